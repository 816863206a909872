// What is left of a lock of which something cannot be read.
#include "stores/sqlite/codec.hpp"
#include "stores/sqlite/read.hpp"
#include "stores/sqlite/tables.hpp"

#include <algorithm>

namespace holdfast::stores::sqlite {
namespace {

std::uint64_t count_in(Query& row) { return static_cast<std::uint64_t>(std::max<std::int64_t>(row.number(), 0)); }

FencingToken token_in(Query& row) {
    const FencingToken token{count_in(row)};
    // The next one must fit, too.
    return token.value < FencingToken::limit - 1 ? token : FencingToken{};
}

}  // namespace

Result<DamagedLock> Tables::damage(const LockName& name, const Moment& moment) {
    DamagedLock found{.damage = {.what = "the record, which is missing"}};
    kernel::Damage& damage = found.damage;
    Query columns(database_, "SELECT token, seq, record FROM holdfast_locks WHERE name = ?");
    const auto row = columns.bind(name.text()).step();
    if (!row) return std::unexpected(row.error());
    found.has_row = *row;
    if (*row) {
        damage.what = "the record";
        damage.token = token_in(columns);
        damage.seq = count_in(columns);
        const auto bytes = columns.blob();
        damage.bytes.assign(bytes.begin(), bytes.end());
    }
    for (const bool newest : {false, true}) {
        Query log(database_, newest ? "SELECT seq, token FROM holdfast_audit WHERE name = ? ORDER BY seq DESC LIMIT 1"
                                    : "SELECT seq, token FROM holdfast_audit WHERE name = ? ORDER BY seq LIMIT 1");
        const auto event = log.bind(name.text()).step();
        if (!event) return std::unexpected(event.error());
        const std::uint64_t seq = *event ? count_in(log) : 0;
        if (!newest) damage.pruned_seq = std::max<std::uint64_t>(*event ? seq : damage.seq + 1, 1) - 1;
        if (!newest || !*event) continue;
        damage.seq = std::max(damage.seq, seq);
        damage.token = std::max(damage.token, token_in(log));
    }
    if (const auto newest = read_history(database_, {.name = name, .limit = 1}); newest && !newest->empty())
        damage.saw_newest(newest->front());
    const auto sound = record(name, moment);
    if (!sound && sound.error().code != Errc::record_corrupt) return std::unexpected(sound.error());
    if (!sound) return found;
    damage.what = "the queue";
    damage.record = sound->record;
    damage.bytes.clear();
    Query tickets(database_, "SELECT ticket FROM holdfast_queue WHERE name = ? ORDER BY number LIMIT 100");
    tickets.bind(name.text());
    while (true) {
        const auto ticket = tickets.step();
        if (!ticket) return std::unexpected(ticket.error());
        if (!*ticket) return found;
        const auto bytes = tickets.blob();
        damage.bytes.insert(damage.bytes.end(), bytes.begin(), bytes.end());
    }
}

Result<std::vector<LockId>> Tables::clear_queue(const LockName& name) {
    std::vector<LockId> gone;
    Query tickets(database_, "SELECT lock_id FROM holdfast_queue WHERE name = ?");
    tickets.bind(name.text());
    while (true) {
        const auto row = tickets.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) break;
        if (const auto lock_id = LockId::parse(tickets.text())) gone.push_back(*lock_id);
    }
    Query all(database_, "DELETE FROM holdfast_queue WHERE name = ?");
    if (auto cleared = all.bind(name.text()).run(); !cleared) return std::unexpected(cleared.error());
    return gone;
}

}  // namespace holdfast::stores::sqlite
