#include "stores/mysql/session.hpp"

#include "kernel/step.hpp"
#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fcntl.h>
#include <utility>

namespace holdfast::stores::mysql {
namespace {

/// MySQL allows 64 characters.
constexpr std::size_t digits = 60;

Error broken(std::string_view what) {
    return {Errc::store_unavailable, fmt::format("the session of this store is broken: {}; nothing was changed", what)};
}

/// The number of the connection as the server sees it, and as it was told when it connected.
Result<std::int64_t> session_of(Server::Borrowed& connection, Deadline deadline) {
    auto answers = connection->run(Sql("START TRANSACTION; SELECT CONNECTION_ID(); COMMIT"), deadline);
    if (!answers) return std::unexpected(error_of(answers.error(), "look at the session"));
    const auto row = (*answers)[1].next();
    return row ? row->number(0) : 0;
}

}  // namespace

std::string SessionLocks::session_name(const LockName& name) const {
    // Locks of GET_LOCK belong to the server, not to a database. Lower case, because servers differ in whether case
    // matters.
    std::string scope = server_.address().database;
    scope += '\0';
    scope += name.text();
    const Digest digest = sha256({reinterpret_cast<const std::uint8_t*>(scope.data()), scope.size()});
    return "hf:" + to_hex(digest).substr(0, digits);
}

Result<void> SessionLocks::check(Deadline deadline) {
    const auto unsafe = [](const std::string& why) {
        return fail(Errc::store_unsafe, "session=on is refused: " + why);
    };
    const ServerFacts facts = server_.facts();
    if (facts.galera) return unsafe("Galera has no GET_LOCK");
    if (facts.flavour == Flavour::tidb) return unsafe("TiDB waits a second for every GET_LOCK");
    auto one = server_.take_fresh(deadline);
    if (!one) return std::unexpected(one.error());
    auto two = server_.take_fresh(deadline);
    if (!two) return std::unexpected(two.error());
    const auto first = session_of(*one, deadline);
    if (!first) return std::unexpected(first.error());
    const auto second = session_of(*two, deadline);
    if (!second) return std::unexpected(second.error());
    const auto again = session_of(*one, deadline);
    if (!again) return std::unexpected(again.error());
    if (*first != *again || *first == *second || std::cmp_not_equal(*first, (*one)->told_id()))
        return unsafe("a proxy stands before the server and gives connections away between transactions");
    return {};
}

Result<SessionView> SessionLocks::prepare(std::span<const Wanted> wanted, Deadline deadline) {
    const std::scoped_lock lock(mutex_);
    Names to_confirm;
    Names to_get;
    for (const Wanted& one : wanted) {
        if (held_.contains(one.name))
            to_confirm.push_back(one.name);
        else if (one.may_take_over && !in_doubt_.contains(one.name))
            to_get.push_back(one.name);
    }
    if (to_confirm.empty() && to_get.empty()) return SessionView{};
    if (auto connected = connect(deadline); !connected) return std::unexpected(connected.error());

    auto kept = confirm(to_confirm, deadline);
    if (!kept) {
        // The session is gone, and the server has released all its locks. Take them again, as far as they are still
        // free.
        disconnect();
        if (auto connected = connect(deadline); !connected) return std::unexpected(connected.error());
        kept = confirm(to_confirm, deadline);
        if (!kept) return std::unexpected(kept.error());
    }
    SessionView view;
    for (const LockName& name : to_confirm) {
        if (kept->contains(name)) continue;
        held_.erase(name);
        view.lost.insert(name);
    }
    auto gained = get(to_get, deadline);
    if (!gained) return std::unexpected(gained.error());
    in_doubt_.insert(gained->begin(), gained->end());
    view.gained = std::move(*gained);
    view.kept = std::move(*kept);
    return view;
}

void SessionLocks::settle(std::span<const Request> requests, std::span<const Reply> replies, const SessionView& view,
                          Deadline deadline) {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < replies.size(); ++i) learn(requests[i], replies[i], view);
    Names ended;
    for (const auto* names : {&view.gained, &view.kept})
        for (const LockName& name : *names)
            if (!held_.contains(name)) ended.push_back(name);
    for (const LockName& name : view.gained) in_doubt_.erase(name);
    release(ended, deadline);
}

void SessionLocks::learn(const Request& request, const Reply& reply, const SessionView& view) {
    const LockName& name = name_of(request);
    const auto own = kernel::ticket_of(request);
    const LockStatus* const status = reply ? &reply->lock : reply.error().holder.get();
    const auto* const lease = status != nullptr && status->name == name && status->lease ? &*status->lease : nullptr;
    if (reply && std::holds_alternative<Acquire>(request) && lease != nullptr && view.has(name)) {
        held_.insert_or_assign(name, lease->lock_id);
        return;
    }
    const auto known = held_.find(name);
    if (known == held_.end()) return;
    const bool other = lease != nullptr ? lease->lock_id != known->second : reply.has_value();
    const bool over = !reply && own == known->second && reply.error().code == Errc::lock_not_held;
    if (other || over) held_.erase(known);
}

void SessionLocks::settle_unknown(std::span<const Request> requests, const SessionView& view) {
    const std::scoped_lock lock(mutex_);
    for (const Request& request : requests) {
        const auto* const acquire = std::get_if<Acquire>(&request);
        if (acquire == nullptr || !view.gained.contains(acquire->name)) continue;
        held_.insert_or_assign(acquire->name, acquire->as.lock_id);
    }
    for (const LockName& name : view.gained) in_doubt_.erase(name);
}

void SessionLocks::disconnect() {
    if (connection_) (*connection_)->discard();
    connection_.reset();
}

Result<void> SessionLocks::connect(Deadline deadline) {
    if (connection_ && (*connection_)->is_usable()) return {};
    disconnect();
    auto fresh = server_.take_fresh(deadline);
    if (!fresh) return std::unexpected(fresh.error());
    // The connection idles between renewals, and the server must not close it for that.
    const auto set = (*fresh)->run(Sql("SET SESSION wait_timeout = 28800"), deadline);
    if (!set) return std::unexpected(error_of(set.error(), "keep a session"));
    connection_.emplace(std::move(*fresh));
    in_doubt_.clear();
    Names names;
    for (const auto& [name, lock_id] : held_) names.push_back(name);
    const auto again = get(names, deadline);
    if (!again) return std::unexpected(again.error());
    std::erase_if(held_, [&](const auto& lease) { return !again->contains(lease.first); });
    return {};
}

Result<std::set<LockName>> SessionLocks::get(const Names& names, Deadline deadline) {
    const auto answers = ask("GET_LOCK(", names, ", 0)", deadline);
    if (!answers) return std::unexpected(answers.error());
    std::set<LockName> gained;
    for (std::size_t i = 0; i < names.size(); ++i) {
        // NULL: the server could not tell.
        if (!(*answers)[i]) return std::unexpected(broken("GET_LOCK failed"));
        if (*(*answers)[i] == 1) gained.insert(names[i]);
    }
    return gained;
}

Result<std::set<LockName>> SessionLocks::confirm(const Names& names, Deadline deadline) {
    const auto answers = ask("CONNECTION_ID() = IS_USED_LOCK(", names, ")", deadline);
    if (!answers) return std::unexpected(answers.error());
    std::set<LockName> kept;
    for (std::size_t i = 0; i < names.size(); ++i)
        if ((*answers)[i] == 1) kept.insert(names[i]);
    return kept;
}

void SessionLocks::release(const Names& names, Deadline deadline) {
    if (names.empty() || !connection_) return;
    const auto answers = ask("RELEASE_LOCK(", names, ")", deadline);
    // Without a yes we no longer know which locks this session holds. A new session holds none, and `connect` takes
    // those that are still needed.
    const bool released = answers && std::ranges::all_of(*answers, [](const auto& answer) { return answer == 1; });
    if (!released) disconnect();
}

Result<std::vector<std::optional<std::int64_t>>> SessionLocks::ask(Sql::Text before, const Names& names,
                                                                   Sql::Text behind, Deadline deadline) {
    std::vector<std::optional<std::int64_t>> numbers;
    if (names.empty()) return numbers;
    Sql sql("SELECT ");
    Comma comma;
    for (const LockName& name : names) (sql << comma.next() << before).value(session_name(name)) << behind;
    auto answers = (*connection_)->run(sql, deadline);
    if (!answers) return std::unexpected(broken(answers.error().text));
    const auto row = answers->front().next();
    for (std::size_t i = 0; i < names.size(); ++i)
        numbers.push_back(row && !row->is_null(i) ? std::optional(row->number(i)) : std::nullopt);
    return numbers;
}

std::optional<int> SessionLocks::duplicate() const {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || !connection_) return std::nullopt;
    const int copy = fcntl((*connection_)->socket(), F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? std::nullopt : std::optional(copy);
}

}  // namespace holdfast::stores::mysql
