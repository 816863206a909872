#include "stores/sqlite/grade.hpp"

#include "stores/sqlite/schema.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <sys/stat.h>

namespace holdfast::stores::sqlite {
namespace {

/// Stops a long check when the caller's time is over.
struct CheckLimit {
    const Clock& clock;
    Deadline deadline;
};

int is_over(void* limit) {
    const auto& [clock, deadline] = *static_cast<const CheckLimit*>(limit);
    return deadline.passed(clock) ? 1 : 0;
}

Finding permissions_of(const Place& place) {
    const auto looked = look_at(place);
    if (!looked) return {"permissions", false, looked.error().message};
    struct stat found{};
    if (!*looked || lstat(place.database.c_str(), &found) != 0)
        return {"permissions", true, "the file is not there yet"};
    const auto mode = static_cast<unsigned>(found.st_mode & 07777U);
    const bool is_private = (mode & 077U) == 0;
    return {"permissions", is_private,
            fmt::format("{:04o}{}", mode, is_private ? "" : ", which lets others read it; chmod go-r")};
}

/// While it lives, statements of this connection end when the caller's time is over.
class Interruption {
public:
    Interruption(Database& database, const Clock& clock, Deadline deadline)
        : database_(database), limit_{clock, deadline} {
        constexpr int instructions_between_looks = 10'000;
        sqlite3_progress_handler(database_.handle(), instructions_between_looks, is_over, &limit_);
    }
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;
    ~Interruption() { sqlite3_progress_handler(database_.handle(), 0, nullptr, nullptr); }

    /// Whether that ended the last statement.
    [[nodiscard]] bool came() const { return sqlite3_errcode(database_.handle()) == SQLITE_INTERRUPT; }

private:
    Database& database_;
    CheckLimit limit_;
};

Finding integrity_of(Database& database, const Clock& clock, Deadline deadline) {
    const Interruption interruption(database, clock, deadline);
    // One line is enough to know; a large store has a large list.
    const auto verdict = database.text("PRAGMA quick_check(1)");
    if (interruption.came()) return {"integrity", true, "not finished in the time given"};
    if (!verdict) return {"integrity", false, verdict.error().message};
    return {"integrity", *verdict == "ok", *verdict};
}

/// The names of all locks, also of those that have a history and no record.
Result<std::vector<std::string>> all_names(Database& database) {
    Query rows(database, "SELECT name FROM holdfast_locks UNION SELECT name FROM holdfast_audit");
    std::vector<std::string> names;
    while (true) {
        const auto row = rows.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) return names;
        names.emplace_back(rows.text());
    }
}

Result<void> expect_readable(Tables& tables, const std::string& text, const Moment& moment) {
    const auto name = LockName::parse(text);
    if (!name) return fail(Errc::record_corrupt, "a record has a name that no lock can have");
    if (const auto record = tables.record(*name, moment); !record) return std::unexpected(record.error());
    if (const auto queue = tables.queue(*name, std::nullopt, moment); !queue) return std::unexpected(queue.error());
    return {};
}

/// Reads every lock and the head of its queue as a change would, so that it reports exactly the locks that a change
/// would find unreadable.
Finding records_of(CheckedStore& store, const Clock& clock, Deadline deadline) {
    const Interruption interruption(store.database(), clock, deadline);
    const auto snapshot = Transaction::snapshot(store.database());
    if (!snapshot) return {"records", false, snapshot.error().message};
    const Moment moment = Moment::of(clock);
    const auto names = all_names(store.database());
    if (!names && interruption.came()) return {"records", true, "not read in the time given"};
    if (!names) return {"records", false, names.error().message};
    std::size_t read = 0;
    for (const std::string& text : *names) {
        const auto readable = expect_readable(store.tables(), text, moment);
        if (deadline.passed(clock) || (!readable && interruption.came()))
            return {"records", true, fmt::format("the first {} of {} can be read", read, names->size())};
        if (!readable) return {"records", false, readable.error().message};
        ++read;
    }
    return {"records", true, fmt::format("all {} can be read", read)};
}

Finding setting(Database& database, std::string name, std::string_view sql, std::string_view wanted) {
    const auto value = database.text(sql);
    if (!value) return {std::move(name), false, value.error().message};
    return {std::move(name), *value == wanted, *value};
}

Finding synchronous_of(Database& database) {
    const auto value = database.number("PRAGMA synchronous");
    if (!value) return {"synchronous", false, value.error().message};
    // Chosen by the URL, so no fault; the grade shows the price.
    return {"synchronous", true, *value >= 2 ? "full" : "off by sync=off"};
}

}  // namespace

std::vector<Finding> examine_place(const Place& place, const base::Promise& promise) {
    return {
        {"sqlite", true, sqlite3_libversion()},
        {"file_system", promise.grade != Grade::c, promise.file_system},
        permissions_of(place),
        base::rights_to_write({place.folder, place.database, place.log(), place.index(), place.gate(), place.bells()}),
        base::free_space_in(place.folder)};
}

std::vector<Finding> examine_session(CheckedStore& store, const Clock& clock, Deadline deadline) {
    Database& database = store.database();
    std::vector<Finding> findings;
    findings.push_back(
        {"format", true,
         fmt::format("{}{}", store.format(),
                     store.format() == our_format ? "" : fmt::format("; the first change makes it {}", our_format))});
    findings.push_back(setting(database, "journal_mode", "PRAGMA journal_mode", "wal"));
    findings.push_back(synchronous_of(database));
    findings.push_back(integrity_of(database, clock, deadline));
    findings.push_back(records_of(store, clock, deadline));
    return findings;
}

}  // namespace holdfast::stores::sqlite
