#include "server/query.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace holdfast::server {

void answer_with(Services& services, const ExchangePtr& exchange, Read read) {
    const bool runs = services.readers.run([&services, exchange, read = std::move(read)]() mutable {
        auto reply = read(services.store, Deadline::in(services.clock, services.options.patience));
        services.loop.post([exchange, reply = std::move(reply)]() mutable {
            exchange->reply(reply ? std::move(*reply) : reply_with(reply.error()));
        });
    });
    if (!runs) exchange->reply(reply_with({Errc::store_unavailable, "too many requests wait for the store"}));
}

Result<std::uint64_t> parse_number(std::string_view what, std::string_view text, std::uint64_t most) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number > most)
        return fail(Errc::usage, fmt::format("{} is not a number from 0 to {}", what, most));
    return number;
}

Result<std::uint64_t> number_in(const HttpRequest& request, std::string_view name, std::uint64_t usual,
                                std::uint64_t most) {
    const auto text = request.parameter(name);
    return text ? parse_number(name, *text, most) : usual;
}

Result<bool> switch_in(const HttpRequest& request, std::string_view name) {
    const auto text = request.parameter(name);
    if (!text || *text == "0" || *text == "false") return false;
    if (*text == "1" || *text == "true") return true;
    return fail(Errc::usage, fmt::format("{} is 0 or 1", name));
}

Result<std::optional<Instant>> time_in(const HttpRequest& request, std::string_view name) {
    const auto text = request.parameter(name);
    if (!text) return std::nullopt;
    const auto time = parse_time(*text);
    if (!time) return fail(Errc::usage, fmt::format("{} is not a time such as 2026-01-31T12:00:00.000Z", name));
    return time;
}

Result<LockName> name_in(const Exchange& exchange) {
    const auto text = exchange.request.parameter("name");
    if (!text) return fail(Errc::usage, "name is missing");
    auto name = LockName::parse(*text);
    if (!name) return name;
    if (auto allowed = permit(exchange.who, Role::viewer, *name); !allowed) return std::unexpected(allowed.error());
    return name;
}

}  // namespace holdfast::server
