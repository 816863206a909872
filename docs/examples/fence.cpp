// Writes to a SQLite database behind its fence: only the newest holder of the lock can commit. Quoted in
// docs/reference/library.md, built and run by tests/docs.

#include "holdfast/fence.hpp"

#include "holdfast/open.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace {

int report(const holdfast::Error& error) {
    std::cerr << error.message << '\n';
    return holdfast::row_of(error.code).exit_status;
}

int add_five(const std::string& database) {
    auto store = holdfast::open_store("memory:");
    const auto name = holdfast::LockName::parse("counter");
    if (!store || !name) return 1;

    auto held = holdfast::hold_fenced(**store, *name, database);
    if (!held) return report(held.error());
    holdfast::FencedDatabase& fenced = held->database();

    if (auto begun = fenced.begin(); !begun) return report(begun.error());
    if (const auto made = fenced.run("CREATE TABLE IF NOT EXISTS counter (v INTEGER)"); !made)
        return report(made.error());
    if (auto committed = fenced.commit(); !committed) return report(committed.error());

    if (auto begun = fenced.begin(); !begun) return report(begun.error());
    const auto added = fenced.run("UPDATE counter SET v = v + $1", {std::int64_t{5}});
    if (!added) return report(added.error());
    if (auto committed = fenced.commit(); !committed) return report(committed.error());
    std::cout << "changed " << added->changed << " rows\n";
    return 0;
}

}  // namespace

int main() {
    const auto folder = std::filesystem::temp_directory_path() / "holdfast-example-fence";
    std::filesystem::create_directories(folder);
    const auto file = folder / "app.db";
    std::ofstream(file, std::ios::app).close();
    const int status = add_five("sqlite:" + file.string());
    std::filesystem::remove_all(folder);
    return status;
}
