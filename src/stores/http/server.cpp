#include "stores/http/server.hpp"

#include "base/real_clock.hpp"
#include "json/error.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

namespace holdfast::stores::http {
namespace {

/// Documents of many locks are larger than those that a daemon accepts.
constexpr json::ParseLimits answer_limits{.bytes = std::size_t{64} << 20, .depth = 16};

Error without_document(const Address& address, const Answer& answer) {
    if (answer.status == 401 || answer.status == 403)
        return {Errc::denied, fmt::format("{} answers with status {}", address.shown, answer.status)};
    if (!answer.redirect.empty())
        return {Errc::store_unavailable,
                fmt::format("{} says that it is elsewhere ({}), and that is not followed: it would be sent the token",
                            address.shown, answer.redirect)};
    return {Errc::store_unavailable,
            fmt::format("{} answers with status {}, and not as a Holdfast daemon does", address.shown, answer.status)};
}

}  // namespace

Error not_understood(const Address& address, const Error& why) {
    return {Errc::store_unavailable,
            fmt::format("the answer of {} cannot be understood: {}", address.shown, printable(why.message))};
}

Statement statement_of(const Address& address, const Answer& answer) {
    auto node = json::parse(answer.body, answer_limits);
    if (answer.status == 200 && node) return {std::move(node)};
    if (answer.status == 200) return {std::unexpected(not_understood(address, node.error())), true};
    if (node)
        if (auto error = json::read_error(*node)) {
            const bool is_unknown = error->code == Errc::outcome_unknown;
            return {std::unexpected(std::move(*error)), is_unknown};
        }
    return {std::unexpected(without_document(address, answer)), answer.status < 300 || answer.status >= 500};
}

Result<std::unique_ptr<Connection>> Server::connect(const base::CallBudget& budget) {
    auto connection = std::make_unique<Connection>(address_);
    // Every daemon answers this to everybody. It also tells what time it is there.
    const auto answer = exchange(*connection, {.path = "/healthz"}, budget);
    if (!answer) return std::unexpected(not_reached(address_, answer.error()));
    if (answer->status == 200) return connection;
    return std::unexpected(without_document(address_, *answer));
}

std::optional<Instant> Server::in_daemon_time(std::chrono::milliseconds from_now) const {
    const std::scoped_lock lock(mutex_);
    if (!sample_) return std::nullopt;
    return sample_->daemon_time + (base::real_clock().boottime() - sample_->taken_at) + from_now;
}

std::expected<Answer, ExchangeError> Server::exchange(Connection& connection, const Question& question,
                                                      const base::CallBudget& budget) {
    auto answer = connection.exchange(question, budget);
    if (answer && answer->daemon_time) {
        const std::scoped_lock lock(mutex_);
        sample_ = Sample{*answer->daemon_time, base::real_clock().boottime()};
    }
    return answer;
}

Result<json::Node> Server::read(const std::string& path, const base::CallBudget& budget) {
    while (true) {
        auto connection = pool_.take(budget);
        if (!connection) return std::unexpected(connection.error());
        if (budget.over()) return fail(Errc::store_unavailable, "the time for this call is over");
        const auto answer = exchange(**connection, {.path = path}, budget);
        if (answer) return statement_of(address_, *answer).document;
        if (!connection->was_idle()) return std::unexpected(not_reached(address_, answer.error()));
    }
}

std::expected<json::Node, ChangeError> Server::change(const std::string& path, const std::string& body,
                                                      const std::optional<StoreId>& store_id, Use use,
                                                      const base::CallBudget& budget) {
    const auto unchanged = [](Error error, bool was_idle = false) {
        return std::unexpected(ChangeError{false, std::move(error), was_idle});
    };
    auto connection = use == Use::fresh ? pool_.take_fresh(budget) : pool_.take(budget);
    if (!connection) return unchanged(connection.error());
    if (budget.over())
        return unchanged({Errc::store_unavailable, "the time for this call is over; nothing was changed"});
    for (bool is_first = true;; is_first = false) {
        const Question question{path, body, in_daemon_time(budget.left()), store_id};
        const auto answer = exchange(**connection, question, budget);
        if (!answer) {
            if (!answer.error().sent)
                return unchanged(not_reached(address_, answer.error()), is_first && connection->was_idle());
            return std::unexpected(
                ChangeError{true,
                            {Errc::outcome_unknown, fmt::format("{} was sent the change and has not answered: {}",
                                                                address_.shown, printable(answer.error().why))}});
        }
        Statement said = statement_of(address_, *answer);
        if (said.document) return std::move(*said.document);
        if (said.may_have_acted)
            return std::unexpected(ChangeError{true, {Errc::outcome_unknown, said.document.error().message}});
        // It came in time by our clock. So that of the daemon was moved, and now we know what it shows.
        const bool seems_late =
            answer->daemon_time && question.late_after && *answer->daemon_time >= question.late_after;
        if (said.document.error().code != Errc::store_unavailable || !seems_late || !is_first || budget.over())
            return unchanged(std::move(said.document.error()));
    }
}

}  // namespace holdfast::stores::http
