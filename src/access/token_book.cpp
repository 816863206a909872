#include "access/token_book.hpp"

#include <algorithm>
#include <chrono>

namespace holdfast::access {
namespace {

/// In less time than this, two changes of a file may look like one.
constexpr std::chrono::seconds file_clock_resolution{2};

std::unexpected<Error> nobody() { return fail(Errc::denied, "the API token is missing, wrong, revoked or expired"); }

Identity identity_of(const TokenEntry& entry) {
    return {.auth = Auth::token, .user = entry.user, .token_id = entry.id, .grants = entry.grants};
}

}  // namespace

Result<Identity> TokenBook::by_token(std::string_view token) {
    const auto shown = ApiToken::parse(token);
    if (!shown) return nobody();
    const KeyHash hash = shown->hash();
    const std::scoped_lock lock(mutex_);
    read_if_changed();
    // The id is public; what follows it is compared as a hash, in the same time whatever differs.
    const auto entry = std::ranges::find(entries_, shown->id, &TokenEntry::id);
    if (entry == entries_.end() || !entry->hash || !(*entry->hash == hash)) return nobody();
    if (!entry->is_valid_at(clock_->wall())) return nobody();
    return identity_of(*entry);
}

Result<Identity> TokenBook::by_user(std::string_view user) {
    const auto unknown = fail(Errc::denied, "the proxy's user has no rights here");
    if (user.empty() || user == any_user) return unknown;
    const std::scoped_lock lock(mutex_);
    read_if_changed();
    const auto is_listed = [&](const TokenEntry& entry) { return !entry.hash && entry.user == user; };
    const std::string_view listed_as = std::ranges::any_of(entries_, is_listed) ? user : any_user;
    Identity identity{.auth = Auth::proxy, .user = std::string(user)};
    for (const TokenEntry& entry : entries_)
        if (!entry.hash && entry.user == listed_as && entry.is_valid_at(clock_->wall()))
            identity.grants.insert(identity.grants.end(), entry.grants.begin(), entry.grants.end());
    if (identity.grants.empty()) return unknown;
    return identity;
}

Result<Identity> TokenBook::again(const Identity& caller) {
    if (caller.auth == Auth::open) return nobody();
    auto now = [&]() -> Result<Identity> {
        if (caller.auth == Auth::proxy) return by_user(caller.user);
        const std::scoped_lock lock(mutex_);
        read_if_changed();
        const auto entry = std::ranges::find(entries_, caller.token_id, &TokenEntry::id);
        if (entry == entries_.end() || !entry->hash || !entry->is_valid_at(clock_->wall())) return nobody();
        return identity_of(*entry);
    }();
    if (!now) return now;
    now->auth = caller.auth;
    now->address = caller.address;
    return now;
}

std::optional<Error> TokenBook::problem() {
    const std::scoped_lock lock(mutex_);
    read_if_changed();
    return problem_;
}

std::uint64_t TokenBook::changes() {
    const std::scoped_lock lock(mutex_);
    read_if_changed();
    return changes_;
}

void TokenBook::read_if_changed() {
    const auto version = base::version_of(path_);
    const bool is_same = version && *version && version_ && **version == *version_;
    if (is_same && !may_change_unseen_) return;
    auto read = read_tokens(path_);
    if (!read) {
        if (!entries_.empty()) ++changes_;
        entries_.clear();
        version_.reset();
        problem_ = read.error();
        return;
    }
    if (entries_ != read->entries) ++changes_;
    entries_ = std::move(read->entries);
    version_ = read->version;
    problem_.reset();
    const std::chrono::nanoseconds age =
        std::chrono::nanoseconds(clock_->wall().time_since_epoch()) - std::chrono::nanoseconds(version_->changed_ns);
    may_change_unseen_ = age < file_clock_resolution;
}

}  // namespace holdfast::access
