#include "support/store_harness.hpp"

#include "holdfast/open.hpp"

#include <sqlite3.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace holdfast::tests {
namespace {

class MemoryHarness final : public StoreHarness {
public:
    [[nodiscard]] std::string url() const override { return "memory:"; }
    void corrupt(const LockName&) override { throw std::logic_error("memory cannot be damaged from outside"); }
    void corrupt_queue(const LockName& name) override { corrupt(name); }
};

class FileHarness final : public StoreHarness {
public:
    [[nodiscard]] std::string url() const override { return "file:" + (folder() / "locks").string() + "?sync=off"; }
    /// Flips a bit in the middle of the record.
    void corrupt(const LockName& name) override {
        const std::filesystem::path file = record_of(name);
        std::string content = content_of(file);
        char& middle = content[content.size() / 2];
        middle = static_cast<char>(middle ^ 1);
        std::ofstream(file, std::ios::binary) << content;
    }
    void corrupt_queue(const LockName& name) override {
        for (const auto& entry : std::filesystem::directory_iterator(record_of(name).parent_path() / "queue"))
            std::ofstream(entry.path(), std::ios::binary) << "damaged";
    }

private:
    static std::string content_of(const std::filesystem::path& file) {
        std::ifstream in(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    /// Found by the name that it contains, so that this does not depend on how folders are called.
    [[nodiscard]] std::filesystem::path record_of(const LockName& name) const {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder()))
            if (entry.path().filename() == "record" && content_of(entry.path()).find(name.text()) != std::string::npos)
                return entry.path();
        throw std::runtime_error("no record of " + name.text());
    }
};

class SqliteHarness final : public StoreHarness {
public:
    [[nodiscard]] std::string url() const override { return "sqlite:" + file().string() + "?sync=off"; }
    /// Changes a column, as a slip in a SQL shell does.
    void corrupt(const LockName& name) override {
        change("UPDATE holdfast_locks SET token = token + 1 WHERE name = %Q", name);
    }
    void corrupt_queue(const LockName& name) override {
        change("UPDATE holdfast_queue SET crc = crc + 1 WHERE name = %Q", name);
    }

private:
    void change(const char* sql, const LockName& name) const {
        sqlite3* opened = nullptr;
        const int status = sqlite3_open(file().c_str(), &opened);
        const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(opened, sqlite3_close);
        if (status != SQLITE_OK) throw std::runtime_error("cannot open " + file().string());
        const std::unique_ptr<char, decltype(&sqlite3_free)> statement(sqlite3_mprintf(sql, name.text().c_str()),
                                                                       sqlite3_free);
        if (sqlite3_exec(database.get(), statement.get(), nullptr, nullptr, nullptr) != SQLITE_OK ||
            sqlite3_changes(database.get()) != 1)
            throw std::runtime_error("no record of " + name.text());
    }

    [[nodiscard]] std::filesystem::path file() const { return folder() / "locks.db"; }
};

template <class Harness>
Result<std::unique_ptr<StoreHarness>> start() {
    auto harness = std::make_unique<Harness>();
    if (auto opened = harness->reopen(); !opened) return std::unexpected(opened.error());
    return harness;
}

}  // namespace

Result<std::unique_ptr<Store>> StoreHarness::open_another() const { return open_store(url(), *clock_); }

Result<void> StoreHarness::reopen() {
    store_.reset();
    auto store = open_store(url(), *clock_);
    if (!store) return std::unexpected(store.error());
    store_ = std::move(*store);
    return {};
}

Result<void> StoreHarness::reboot() {
    store_.reset();
    clock_->reboot();
    return reopen();
}

Result<std::unique_ptr<StoreHarness>> start_memory() { return start<MemoryHarness>(); }
Result<std::unique_ptr<StoreHarness>> start_file() { return start<FileHarness>(); }
Result<std::unique_ptr<StoreHarness>> start_sqlite() { return start<SqliteHarness>(); }

}  // namespace holdfast::tests
