#include "stores/http/codec.hpp"

#include "json/error.hpp"
#include "json/fields.hpp"
#include "json/lock.hpp"
#include "json/request.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::stores::http {
namespace {

/// Half of what a daemon takes in one body, and of how many requests.
constexpr std::size_t largest_body = std::size_t{512} << 10;
constexpr std::size_t most_requests = 500;

void append_escaped(std::string& text, std::string_view value) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (const char c : value) {
        if (plain.find(c) == std::string_view::npos)
            fmt::format_to(std::back_inserter(text), "%{:02x}", static_cast<unsigned char>(c));
        else
            text += c;
    }
}

/// Whether `outcome` can be that of `request`.
bool fits(const Request& request, const Outcome& outcome) {
    if (outcome.lock.name != name_of(request)) return false;
    const auto holds = [&](const Credentials& as) {
        return outcome.lock.lease && outcome.lock.lease->lock_id == as.lock_id;
    };
    if (const auto* const acquire = std::get_if<Acquire>(&request)) return holds(acquire->as);
    if (const auto* const renew = std::get_if<Renew>(&request)) return holds(renew->as);
    if (const auto* const transfer = std::get_if<Transfer>(&request)) return holds(transfer->to_as);
    return true;
}

}  // namespace

Path& Path::add(std::string_view name, std::string_view value) {
    text_ += text_.find('?') == std::string::npos ? '?' : '&';
    text_ += name;
    text_ += '=';
    append_escaped(text_, value);
    return *this;
}

Path& Path::add(std::string_view name, Instant value) { return add(name, to_rfc3339(value)); }
Path& Path::add(std::string_view name, std::uint64_t value) { return add(name, std::to_string(value)); }

std::vector<std::pair<std::string, std::size_t>> batches_of(std::span<const Request> requests) {
    std::vector<std::pair<std::string, std::size_t>> batches;
    std::vector<json::Value> items;
    std::size_t bytes = 0;
    const auto close = [&] {
        batches.emplace_back(json::Object().set("requests", json::Value::array(items)).done().written(), items.size());
        items.clear();
        bytes = 0;
    };
    for (const Request& request : requests) {
        json::Value item = json::request(request).done();
        const std::size_t size = item.written().size();
        if (!items.empty() && (bytes + size > largest_body || items.size() == most_requests)) close();
        bytes += size;
        items.push_back(std::move(item));
    }
    if (!items.empty() || batches.empty()) close();
    return batches;
}

Result<std::vector<Reply>> read_replies_to(std::span<const Request> requests, const json::Node& node) {
    auto replies = json::read_replies(node);
    if (!replies) return replies;
    if (replies->size() != requests.size())
        return fail(Errc::usage, fmt::format("{} replies to {} requests", replies->size(), requests.size()));
    for (std::size_t i = 0; i < requests.size(); ++i)
        if ((*replies)[i] && !fits(requests[i], *(*replies)[i]))
            return fail(Errc::usage, fmt::format("replies[{}] is the reply to another request", i));
    return replies;
}

std::string wait_body(std::span<const Watch> watches, std::chrono::milliseconds most) {
    std::vector<json::Value> items;
    for (const Watch& watch : watches) {
        json::Object item;
        item.set("name", json::Value::text(watch.name.text())).set("seen_seq", json::Value::number(watch.seen_seq));
        if (watch.ticket) item.set("ticket", json::Value::text(watch.ticket->text()));
        if (watch.lease) item.set("lease_id", json::Value::text(watch.lease->text()));
        items.push_back(item.done());
    }
    return json::Object()
        .set("watches", json::Value::array(items))
        .set("timeout_ms", json::Value::duration(most))
        .done()
        .written();
}

Result<std::vector<FiredWatch>> read_fired(const json::Node& node, std::size_t count) {
    json::Fields in(node);
    std::vector<FiredWatch> fired;
    for (const json::Node& item : in.array("fired")) {
        json::Fields one(item, fmt::format("fired[{}]", fired.size()));
        const std::uint64_t index = one.number("index");
        if (index >= count) one.refuse("index", "is not that of a watch");
        if (one.error()) return std::unexpected(*one.error());
        FiredWatch watch{.index = index, .is_handed_on = one.has("handed_on")};
        if (one.has("error")) {
            auto error = json::read_error(item, fmt::format("fired[{}]", fired.size()));
            if (!error) return std::unexpected(error.error());
            watch.error = std::move(*error);
        }
        fired.push_back(std::move(watch));
    }
    if (in.error()) return std::unexpected(*in.error());
    return fired;
}

}  // namespace holdfast::stores::http
