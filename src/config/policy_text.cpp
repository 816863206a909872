#include "config/policy_text.hpp"

#include "values/text.hpp"

namespace holdfast::config {

std::optional<std::string> set_policy(client::Policy& policy, const std::string& key,
                                      const std::vector<std::string>& texts) {
    const auto time = [&](std::optional<std::chrono::milliseconds>& into) -> std::optional<std::string> {
        const auto parsed = parse_duration(texts.front());
        if (!parsed) return parsed.error().message;
        into = *parsed;
        return std::nullopt;
    };
    if (key == "unless_held") {
        policy.unless_held = texts;
        return std::nullopt;
    }
    if (texts.size() != 1) return key + " has one value";
    if (key == "ttl") return time(policy.ttl);
    if (key == "longest_ttl") return time(policy.longest_ttl);
    if (key == "longest_hold") return time(policy.longest_hold);
    if (key == "renew_interval") return time(policy.renew_interval);
    if (key == "stale_after") return time(policy.stale_after);
    if (key == "wait" && texts.front() == "forever") policy.wait = std::chrono::milliseconds::max();
    if (key == "wait") return policy.wait ? std::nullopt : time(policy.wait);
    if (key == "match") policy.match = texts.front();
    if (key == "renew") policy.renew = texts.front() == "on";
    if (key == "may_wait") policy.may_wait = texts.front() == "on";
    if (key == "may_unlock") policy.may_unlock = texts.front() == "on";
    if ((key == "renew" || key == "may_wait" || key == "may_unlock") && texts.front() != "on" && texts.front() != "off")
        return key + " is true or false";
    return std::nullopt;
}

}  // namespace holdfast::config
