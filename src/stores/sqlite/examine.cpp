#include "stores/sqlite/examine.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

namespace holdfast::stores::sqlite {
namespace {

/// Stops a long check when the caller's time is over.
struct Patience {
    const Clock& clock;
    Deadline deadline;
};

int is_over(void* patience) {
    const auto& p = *static_cast<const Patience*>(patience);
    return p.deadline.passed(p.clock) ? 1 : 0;
}

Finding permissions_of(const Place& place) {
    const auto looked = look_at(place);
    if (!looked) return {"permissions", false, looked.error().message};
    struct stat found{};
    if (!*looked || lstat(place.database.c_str(), &found) != 0)
        return {"permissions", true, "the file is not there yet"};
    const auto mode = static_cast<unsigned>(found.st_mode & 07777U);
    const bool is_private = (mode & 077U) == 0;
    return {"permissions", is_private, fmt::format("{:04o}{}", mode, is_private ? "" : ", which lets others read it")};
}

Finding integrity_of(Database& database, const Clock& clock, Deadline deadline) {
    Patience patience{clock, deadline};
    constexpr int instructions_between_looks = 10'000;
    sqlite3_progress_handler(database.handle(), instructions_between_looks, is_over, &patience);
    // One line is enough to know; a large store has a large list.
    const auto verdict = database.text("PRAGMA quick_check(1)");
    const bool interrupted = sqlite3_errcode(database.handle()) == SQLITE_INTERRUPT;
    sqlite3_progress_handler(database.handle(), 0, nullptr, nullptr);
    if (interrupted) return {"integrity", true, "not finished in the time given"};
    if (!verdict) return {"integrity", false, verdict.error().message};
    return {"integrity", *verdict == "ok", *verdict};
}

Finding setting(Database& database, std::string name, std::string_view sql, std::string_view wanted) {
    const auto value = database.text(sql);
    if (!value) return {std::move(name), false, value.error().message};
    return {std::move(name), *value == wanted, *value};
}

Finding synchronous_of(Database& database) {
    const auto value = database.number("PRAGMA synchronous");
    if (!value) return {"synchronous", false, value.error().message};
    const bool full = *value >= 2;
    return {"synchronous", full, full ? "full" : "off: the last grants may not outlive a power cut"};
}

}  // namespace

std::vector<Finding> examine_place(const Place& place, const Standing& standing) {
    return {{"sqlite", true, sqlite3_libversion()},
            {"file_system", standing.grade != Grade::c, standing.file_system},
            permissions_of(place)};
}

std::vector<Finding> examine_session(Session& session, const Clock& clock, Deadline deadline) {
    Database& database = session.database();
    std::vector<Finding> findings;
    findings.push_back({"format", true, "1"});
    findings.push_back(setting(database, "journal_mode", "PRAGMA journal_mode", "wal"));
    findings.push_back(synchronous_of(database));
    findings.push_back(integrity_of(database, clock, deadline));
    return findings;
}

}  // namespace holdfast::stores::sqlite
