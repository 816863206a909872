#include "json/fields.hpp"
#include "json/request.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::json {
namespace {

using std::chrono::milliseconds;

/// One object in which a request stands, and what every kind of request needs to be read from it.
struct Reading {
    Fields& in;
    std::string_view op;
    LockName name;
    Ttl usual;
    std::optional<milliseconds> wait{};

    Credentials lease() const { return or_new(in.parsed<Credentials>("lease")); }
    Credentials lease_or_new(std::string_view key) const { return or_new(in.parsed_if<Credentials>(key)); }
    LockId lock_id() const { return in.parsed<LockId>("lock_id").value_or(LockId{}); }
    Holder holder(std::string_view key) const { return {in.text_or_empty(key), in.text_or_empty("user")}; }

    /// Random numbers are asked of the system, so only where they are needed.
    static Credentials or_new(const std::optional<Credentials>& given) {
        return given ? *given : Credentials::random();
    }
};

std::optional<StaleLease> read_stale_lease(Fields& in) {
    const Node* const node = in.object_if("take_over");
    if (node == nullptr) return std::nullopt;
    Fields seen(*node, in.path_of("take_over"));
    StaleLease stale{seen.parsed<LockId>("lock_id").value_or(LockId{}), seen.number("renew_seq"),
                     seen.duration_if("stale_after_ms").value_or(milliseconds{0})};
    seen.refuse_others();
    in.adopt(seen);
    return stale;
}

Request read_acquire(Reading& at) {
    Acquire request{.name = at.name, .as = at.lease_or_new("lease"), .ttl = at.in.ttl_if("ttl_ms").value_or(at.usual)};
    request.holder = at.holder("holder");
    request.operation = at.in.text_or_empty("operation");
    request.reason = at.in.text_or_empty("reason");
    request.max_hold = at.in.duration_if("max_hold_ms");
    at.wait = at.in.duration_if("wait_ms");
    request.ticket = at.in.ttl_if("ticket_ms");
    request.unless_held = at.in.names("unless_held");
    request.meta = at.in.texts("meta");
    request.takes_over = read_stale_lease(at.in);
    return request;
}

Request read_renew(Reading& at) {
    Renew request{at.name, at.lease(), at.in.ttl_if("ttl_ms").value_or(at.usual),
                  at.in.is_true("revive") ? Revive::yes : Revive::no};
    if (at.in.has("meta")) request.meta = at.in.texts("meta");
    return request;
}

Request read_release(Reading& at) { return Release{at.name, at.lease()}; }
Request read_cancel(Reading& at) { return Cancel{at.name, at.lease()}; }

Request read_transfer(Reading& at) {
    Transfer request{.name = at.name, .as = at.lease(), .to_as = at.lease_or_new("to_lease")};
    request.to = at.holder("to");
    if (request.to.text.empty()) at.in.refuse("to", "is missing");
    request.reason = at.in.text_or_empty("reason");
    return request;
}

Request read_unlock(Reading& at) {
    return Break{at.name, at.lock_id(), at.in.text_or_empty("actor"), at.in.text_or_empty("reason")};
}

Request read_expire(Reading& at) { return Expire{at.name, at.lock_id()}; }

Request read_fenced(Reading& at) {
    return ReportFenced{at.name,
                        at.in.token("token"),
                        at.lock_id(),
                        at.holder("holder"),
                        at.in.text_or_empty("resource"),
                        at.in.text_or_empty("reason")};
}

Request read_check(Reading& at) {
    return Check{at.name, at.in.token("token"), at.in.parsed_if<LockId>("lock_id"), at.in.names("unless_held")};
}

Request read_override_request(Reading& at) {
    Ask request{.name = at.name,
                .as = at.lease_or_new("lease"),
                .ttl = at.in.ttl_if("ttl_ms").value_or(at.usual),
                .valid_for = at.in.ttl_if("valid_for_ms").value_or(at.usual)};
    request.holder = at.holder("holder");
    request.reason = at.in.text_or_empty("reason");
    at.wait = at.in.duration_if("wait_ms");
    return request;
}

Request read_answer(Reading& at) {
    Answer answer{.name = at.name, .ask_id = at.lock_id()};
    answer.verdict = at.op == "override_approve" ? Verdict::approve : Verdict::deny;
    answer.by = at.in.parsed_if<Credentials>("lease");
    answer.actor = at.in.text_or_empty("actor");
    answer.reason = at.in.text_or_empty("reason");
    answer.longest_ttl = at.in.duration_if("longest_ttl_ms");
    answer.max_hold = at.in.duration_if("max_hold_ms");
    answer.breaks_glass = at.in.is_true("break_glass");
    return answer;
}

Request read_prune(Reading& at) {
    return Prune{at.name, at.in.number("through"), at.in.text_or_empty("actor"), at.in.text_or_empty("reason")};
}

Request read_repair(Reading& at) {
    return Repair{at.name, at.in.text_or_empty("actor"), at.in.text_or_empty("reason")};
}

struct Operation {
    std::string_view name;
    Request (*read)(Reading& at);
};

constexpr std::array operations{Operation{"acquire", read_acquire},
                                Operation{"renew", read_renew},
                                Operation{"release", read_release},
                                Operation{"cancel", read_cancel},
                                Operation{"transfer", read_transfer},
                                Operation{"unlock", read_unlock},
                                Operation{"break", read_unlock},
                                Operation{"expire", read_expire},
                                Operation{"check", read_check},
                                Operation{"fenced", read_fenced},
                                Operation{"override_request", read_override_request},
                                Operation{"override_approve", read_answer},
                                Operation{"override_deny", read_answer},
                                Operation{"prune", read_prune},
                                Operation{"repair", read_repair}};

std::vector<std::string> fields_given(const Node& node) {
    std::vector<std::string> given;
    given.reserve(node.object()->size());
    for (const Member& member : *node.object())
        if (!member.node.is_null()) given.push_back(member.key);
    return given;
}

}  // namespace

Result<SentRequest> read_request(const Node& node, std::string_view op, Ttl usual, const std::string& where) {
    Fields in(node, where);
    const std::string said = in.text_or_empty("op");
    if (said.empty() && op.empty()) in.refuse("op", "is missing");
    if (!said.empty() && !op.empty() && said != op) in.refuse("op", fmt::format("is not {}", op));
    const std::string asked(op.empty() ? said : op);
    const auto* const operation = std::ranges::find(operations, asked, &Operation::name);
    if (operation == operations.end()) in.refuse("op", "is not an operation that this version knows");
    const auto name = in.parsed<LockName>("name");
    if (in.error()) return std::unexpected(*in.error());

    Reading at{in, asked, *name, usual};
    Request request = operation->read(at);
    in.refuse_others();
    if (in.error()) return std::unexpected(*in.error());
    return SentRequest{std::move(request), at.wait, fields_given(node)};
}

Result<std::vector<SentRequest>> read_batch(const Node& node, Ttl usual, std::size_t most) {
    Fields in(node);
    const Node::Array& items = in.array("requests");
    if (items.size() > most) in.refuse("requests", fmt::format("has {} items; {} are allowed", items.size(), most));
    in.refuse_others();
    if (in.error()) return std::unexpected(*in.error());
    std::vector<SentRequest> requests;
    for (const Node& item : items) {
        auto each = read_request(item, "", usual, fmt::format("requests[{}]", requests.size()));
        if (!each) return std::unexpected(each.error());
        requests.push_back(std::move(*each));
    }
    return requests;
}

}  // namespace holdfast::json
