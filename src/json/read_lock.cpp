#include "json/error.hpp"
#include "json/fields.hpp"
#include "json/lock.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::json {
namespace {

template <class Enum, std::size_t count>
std::optional<Enum> named(Fields& in, std::string_view key, const std::array<Enum, count>& all) {
    const std::string text = in.text(key);
    for (const Enum value : all)
        if (name_of(value) == text) return value;
    in.refuse(key, "is none of the words that it can be");
    return std::nullopt;
}

Result<std::optional<Override>> read_override(const Node* node, const std::string& where) {
    if (node == nullptr) return std::nullopt;
    Fields in(*node, where);
    Override ask;
    ask.lock_id = in.parsed<LockId>("lock_id").value_or(LockId{});
    ask.asker = {in.text("holder"), in.text_or_empty("user")};
    ask.reason = in.text_or_empty("reason");
    ask.ttl = in.duration("ttl_ms");
    ask.asked_at = in.time("asked_at");
    ask.expires_at = in.time("expires_at");
    if (in.error()) return std::unexpected(*in.error());
    return ask;
}

Result<std::optional<StolenFrom>> read_stolen_from(const Node* node, const std::string& where) {
    if (node == nullptr) return std::nullopt;
    Fields in(*node, where);
    StolenFrom from;
    from.holder = {in.text("holder"), in.text_or_empty("user")};
    from.lock_id = in.parsed<LockId>("lock_id").value_or(LockId{});
    from.token = in.token("token");
    from.expired_at = in.time("expired_at");
    if (in.error()) return std::unexpected(*in.error());
    return from;
}

std::optional<Lease> lease_in(Fields& in, FencingToken token) {
    const auto lock_id = in.parsed_if<LockId>("lock_id");
    if (!lock_id) return std::nullopt;
    Lease lease;
    lease.lock_id = *lock_id;
    // While a lease is there, its token is the highest of the lock.
    lease.token = token;
    lease.holder = {in.text("holder"), in.text_or_empty("user")};
    lease.operation = in.text_or_empty("operation");
    lease.reason = in.text_or_empty("reason");
    lease.ttl = in.duration("ttl_ms");
    lease.acquired_at = in.time("acquired_at");
    lease.renewed_at = in.time("renewed_at");
    lease.renew_seq = in.number("renew_seq");
    lease.expires_at = in.time("expires_at");
    lease.max_until = in.time_if("max_until");
    lease.meta = in.texts("meta");
    return lease;
}

Result<ReadLock> lock_in(Fields& in) {
    constexpr std::array states{LockState::free, LockState::held, LockState::expired, LockState::unreadable};
    constexpr std::array grades{Grade::a, Grade::b, Grade::c};
    const auto name = in.parsed<LockName>("name");
    const auto state = named(in, "state", states);
    const FencingToken token = in.token("token");
    auto lease = lease_in(in, token);
    const bool has_none = state == LockState::free || state == LockState::unreadable;
    if (state && has_none == lease.has_value()) in.refuse("lock_id", "does not go together with the state");
    auto ask = read_override(in.object_if("override"), in.path_of("override"));
    const auto store_id = in.parsed_if<StoreId>("store_id");
    const auto grade = named(in, "grade", grades);
    const std::uint64_t waiters = in.number("waiters");
    const std::uint64_t seq = in.number("seq");
    const std::uint64_t pruned_seq = in.number("pruned_seq");
    const Digest chain = in.digest("chain");
    const Instant as_of = in.time("as_of");
    if (in.error()) return std::unexpected(*in.error());
    if (!ask) return std::unexpected(ask.error());
    LockStatus status{.name = *name, .state = *state, .token = token, .lease = std::move(lease)};
    status.waiters = waiters;
    status.override_request = std::move(*ask);
    status.seq = seq;
    status.chain = chain;
    status.pruned_seq = pruned_seq;
    status.as_of = as_of;
    return ReadLock{std::move(status), store_id, *grade};
}

}  // namespace

Result<ReadLock> read_lock(const Node& node, const std::string& where) {
    Fields in(node, where);
    return lock_in(in);
}

Result<ReadGrant> read_grant(const Node& node, const std::string& where) {
    Fields in(node, where);
    const auto as = in.parsed<Credentials>("lease");
    const bool joined = in.is_true("joined");
    auto stolen_from = read_stolen_from(in.object_if("stolen_from"), in.path_of("stolen_from"));
    auto lock = lock_in(in);
    if (!lock) return std::unexpected(lock.error());
    if (!stolen_from) return std::unexpected(stolen_from.error());
    return ReadGrant{{std::move(lock->status), std::move(*stolen_from)},
                     *as,
                     joined ? Joined::yes : Joined::no,
                     lock->store_id,
                     lock->grade};
}

Result<std::vector<LockStatus>> read_locks(const Node& node) {
    Fields in(node);
    std::vector<LockStatus> locks;
    for (const Node& item : in.array("locks")) {
        auto each = read_lock(item, fmt::format("locks[{}]", locks.size()));
        if (!each) return std::unexpected(each.error());
        locks.push_back(std::move(each->status));
    }
    if (in.error()) return std::unexpected(*in.error());
    return locks;
}

Result<Reply> read_reply(const Node& node, const std::string& where) {
    Fields in(node, where);
    if (in.has("error")) {
        auto refusal = read_error(node, where);
        if (!refusal) return std::unexpected(refusal.error());
        return Reply(std::unexpected(std::move(*refusal)));
    }
    auto stolen_from = read_stolen_from(in.object_if("stolen_from"), in.path_of("stolen_from"));
    auto lock = lock_in(in);
    if (!lock) return std::unexpected(lock.error());
    if (!stolen_from) return std::unexpected(stolen_from.error());
    return Reply(Outcome{std::move(lock->status), std::move(*stolen_from)});
}

Result<std::vector<Reply>> read_replies(const Node& node) {
    Fields in(node);
    std::vector<Reply> replies;
    for (const Node& item : in.array("replies")) {
        auto each = read_reply(item, fmt::format("replies[{}]", replies.size()));
        if (!each) return std::unexpected(each.error());
        replies.push_back(std::move(*each));
    }
    if (in.error()) return std::unexpected(*in.error());
    return replies;
}

}  // namespace holdfast::json
