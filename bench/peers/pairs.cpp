#include "holdfast/open.hpp"
#include "peers/measures.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <chrono>
#include <cstdlib>

namespace holdfast::bench {
namespace {

constexpr int pairs = 400;

[[noreturn]] void give_up(const std::string& why) {
    fmt::print(stderr, "bench: {}\n", why);
    std::exit(1);
}

template <class Pair>
double pairs_per_second(Pair pair) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < pairs; ++i) pair();
    return pairs / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// What a program would write that keeps its leases in SQLite by itself: one row, two transactions.
class LeaseRow {
public:
    LeaseRow(const std::string& file, const std::string& synchronous) {
        if (sqlite3_open(file.c_str(), &database_) != SQLITE_OK) give_up("cannot open " + file);
        execute("PRAGMA journal_mode = WAL");
        execute("PRAGMA synchronous = " + synchronous);
        execute("CREATE TABLE IF NOT EXISTS lease (name TEXT PRIMARY KEY, holder TEXT, expires_at INTEGER)");
        insert_ = prepare("INSERT INTO lease (name, holder, expires_at) VALUES (?, 'me', 1800000000000)");
        remove_ = prepare("DELETE FROM lease WHERE name = ? AND holder = 'me'");
    }
    LeaseRow(const LeaseRow&) = delete;
    LeaseRow& operator=(const LeaseRow&) = delete;
    ~LeaseRow() {
        sqlite3_finalize(insert_);
        sqlite3_finalize(remove_);
        sqlite3_close(database_);
    }

    void pair() {
        const std::string name = "lock/" + std::to_string(count_++);
        run(insert_, name);
        run(remove_, name);
    }

private:
    void execute(const std::string& sql) {
        if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) give_up(sql);
    }
    sqlite3_stmt* prepare(const char* sql) {
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) give_up(sql);
        return statement;
    }
    static void run(sqlite3_stmt* statement, const std::string& name) {
        sqlite3_bind_text(statement, 1, name.c_str(), -1, SQLITE_TRANSIENT);
        if (sqlite3_step(statement) != SQLITE_DONE) give_up("the lease row was not written");
        sqlite3_reset(statement);
    }

    sqlite3* database_ = nullptr;
    sqlite3_stmt* insert_ = nullptr;
    sqlite3_stmt* remove_ = nullptr;
    int count_ = 0;
};

class Library {
public:
    explicit Library(const std::string& url) : store_(open_store(url).value()) {}

    void pair() {
        Acquire acquire{.name = LockName::parse("lock/" + std::to_string(count_++)).value(),
                        .as = Credentials::random(),
                        .holder = holder_,
                        .ttl = Ttl::of(std::chrono::seconds{30}).value()};
        const Deadline soon = Deadline::in(host_clock(), std::chrono::seconds{10});
        if (!store_->apply_one(acquire, soon) || !store_->apply_one(Release{acquire.name, acquire.as}, soon))
            give_up("the store refused a pair");
    }

private:
    std::unique_ptr<Store> store_;
    Holder holder_ = Holder::this_process();
    int count_ = 0;
};

}  // namespace

std::vector<Line> measure_pairs(const Site& site) {
    const std::string folder = site.folder.string();
    LeaseRow full(folder + "/row.db", "FULL");
    LeaseRow off(folder + "/row-off.db", "OFF");
    Library durable("sqlite:" + folder + "/pairs.db");
    Library quick("sqlite:" + folder + "/pairs-off.db?sync=off");
    const std::array contenders{
        Contender{"SQLite lease row", [&] { return pairs_per_second([&] { full.pair(); }); }},
        Contender{"library", [&] { return pairs_per_second([&] { durable.pair(); }); }},
        Contender{"SQLite lease row", [&] { return pairs_per_second([&] { off.pair(); }); }},
        Contender{"library", [&] { return pairs_per_second([&] { quick.pair(); }); }},
    };
    const auto series = alternate(contenders, site.rounds);
    return {{"P2", "library on SQLite, 1 client, WAL FULL", "/s", contenders[0].name, series[0], series[1],
             Goal{0.7, Better::higher}},
            {"P2", "library on SQLite, 1 client, WAL OFF", "/s", contenders[2].name, series[2], series[3]}};
}

}  // namespace holdfast::bench
