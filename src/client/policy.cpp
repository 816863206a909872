#include "client/policy.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// Fills `parts` from the back, so that the recursion needs no undoing.
bool match_from(std::string_view pattern, std::string_view text, std::vector<std::string>& parts) {
    if (pattern.empty()) return text.empty();
    if (pattern[0] != '*') {
        return !text.empty() && text[0] == pattern[0] && match_from(pattern.substr(1), text.substr(1), parts);
    }
    const bool any = pattern.starts_with("**");
    const std::string_view rest = pattern.substr(any ? 2 : 1);
    for (std::size_t length = 0; length <= text.size(); ++length) {
        if (!any && length > 0 && text[length - 1] == '/') return false;
        if (!match_from(rest, text.substr(length), parts)) continue;
        parts.emplace_back(text.substr(0, length));
        return true;
    }
    return false;
}

/// `project/*/propagation` with the parts `42` becomes `project/42/propagation`.
Result<LockName> fill_in(std::string_view pattern, const std::vector<std::string>& parts) {
    std::string name;
    std::size_t next = 0;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '*') {
            name += pattern[i];
            continue;
        }
        if (next == parts.size())
            return fail(Errc::config, fmt::format("\"{}\" in unless_held has more * than the policy's match", pattern));
        name += parts[next++];
        if (pattern.substr(i).starts_with("**")) ++i;
    }
    return LockName::parse(name);
}

Error beyond(const LockName& name, std::string_view what, milliseconds wish, milliseconds most, const Policy& policy) {
    return {Errc::usage, fmt::format("{} of {} for {} is more than the {} that the policy for \"{}\" allows", what,
                                     to_words(wish), name.text(), to_words(most), policy.match)};
}

std::optional<Error> contradiction(const Policy& policy) {
    const auto error = [&](std::string_view why) {
        return Error{Errc::config, fmt::format("the policy for \"{}\" contradicts itself: {}", policy.match, why)};
    };
    if (policy.ttl && policy.longest_ttl && *policy.ttl > *policy.longest_ttl) return error("ttl is above longest_ttl");
    if (!policy.may_wait.value_or(true) && policy.wait.value_or(milliseconds{0}) > milliseconds{0})
        return error("wait, and may_wait = false");
    if (policy.stale_after && !policy.renew.value_or(true))
        return error("stale_after, and renew = false: every holder would look as if it were gone");
    if (policy.stale_after && policy.renew_interval && *policy.stale_after <= *policy.renew_interval)
        return error("stale_after is not above renew_interval");
    return std::nullopt;
}

/// When the caller names none. The default gives way to the limits, so that a policy that has nothing but limits
/// refuses no caller that names no time.
milliseconds usual_ttl(const Policy& policy) {
    if (policy.ttl) return *policy.ttl;
    const milliseconds most =
        std::min(policy.longest_ttl.value_or(default_ttl), policy.longest_hold.value_or(default_ttl));
    return std::min(default_ttl, most);
}

}  // namespace

std::optional<std::vector<std::string>> match_name(std::string_view pattern, std::string_view text) {
    std::vector<std::string> parts;
    if (!match_from(pattern, text, parts)) return std::nullopt;
    std::ranges::reverse(parts);
    return parts;
}

std::optional<bool> may_unlock(const LockName& name, const std::vector<Policy>& policies) {
    const auto first = std::ranges::find_if(
        policies, [&](const Policy& each) { return match_name(each.match, name.text()).has_value(); });
    return first == policies.end() ? std::nullopt : first->may_unlock;
}

Result<Terms> terms_for(const LockName& name, const std::vector<Policy>& policies, const Wish& wish) {
    static const Policy none{"**"};
    const Policy* policy = &none;
    std::vector<std::string> parts;
    for (const Policy& candidate : policies) {
        if (auto matched = match_name(candidate.match, name.text())) {
            policy = &candidate;
            parts = std::move(*matched);
            break;
        }
    }

    if (auto error = contradiction(*policy)) return std::unexpected(std::move(*error));
    const milliseconds ttl_time = wish.ttl.value_or(usual_ttl(*policy));
    if (policy->longest_ttl && ttl_time > *policy->longest_ttl)
        return std::unexpected(beyond(name, "a ttl", ttl_time, *policy->longest_ttl, *policy));
    if (policy->longest_hold && wish.max_hold && *wish.max_hold > *policy->longest_hold)
        return std::unexpected(beyond(name, "a hold", *wish.max_hold, *policy->longest_hold, *policy));
    const bool may_wait = policy->may_wait.value_or(true);
    if (!may_wait && !wish.wait_is_usual && wish.wait.value_or(milliseconds{0}) > milliseconds{0})
        return fail(Errc::usage, fmt::format("nobody waits for {}: the policy for \"{}\" has may_wait = false; try "
                                             "again later, or ask with holdfast override request",
                                             printable(name.text()), printable(policy->match)));
    if (wish.renews && !policy->renew.value_or(true))
        return fail(
            Errc::usage,
            fmt::format("a lease of {} is not renewed: the policy for \"{}\" has renew = false; finish the work "
                        "before it runs out, or take the lock again",
                        printable(name.text()), printable(policy->match)));
    const auto ttl = Ttl::of(ttl_time);
    if (!ttl) return std::unexpected(ttl.error());

    Terms terms{*ttl};
    terms.longest_ttl = policy->longest_ttl;
    terms.max_hold = wish.max_hold ? wish.max_hold : policy->longest_hold;
    if (may_wait) terms.wait = wish.wait.value_or(policy->wait.value_or(milliseconds{0}));
    terms.renew = policy->renew.value_or(true);
    terms.renew_interval = policy->renew_interval;
    terms.stale_after = policy->stale_after;
    terms.unless_held = wish.unless_held;
    for (const std::string& pattern : policy->unless_held) {
        auto excluded = fill_in(pattern, parts);
        if (!excluded) return std::unexpected(excluded.error());
        if (std::ranges::find(terms.unless_held, *excluded) == terms.unless_held.end())
            terms.unless_held.push_back(std::move(*excluded));
    }
    return terms;
}

}  // namespace holdfast::client
