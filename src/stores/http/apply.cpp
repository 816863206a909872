#include "stores/http/apply.hpp"

#include "stores/common/attempt.hpp"
#include "stores/http/codec.hpp"
#include "stores/http/read.hpp"

#include <algorithm>
#include <iterator>

namespace holdfast::stores::http {
namespace {

using Kind = AttemptError::Kind;

/// Requests that say the same again when they come twice, and write no second event. The others are repeated by who
/// sent them, with the same lock_id and key.
bool can_be_repeated(std::span<const Request> requests) {
    return std::ranges::none_of(requests, [](const Request& request) {
        return std::holds_alternative<Acquire>(request) || std::holds_alternative<Renew>(request) ||
               std::holds_alternative<Ask>(request) || std::holds_alternative<ReportFenced>(request);
    });
}

/// The answer to an Acquire that was sent and not answered, if its lease is there now.
std::optional<Outcome> granted_meanwhile(Server& server, std::span<const Request> requests,
                                         const base::CallBudget& budget) {
    const auto* const acquire = requests.size() == 1 ? std::get_if<Acquire>(&requests.front()) : nullptr;
    if (acquire == nullptr) return std::nullopt;
    auto lock = read_status(server, acquire->name, budget);
    const bool is_held = lock && lock->state == LockState::held && lock->lease->lock_id == acquire->as.lock_id;
    return is_held ? std::optional(Outcome{std::move(*lock)}) : std::nullopt;
}

AttemptError in_doubt(std::span<const Request> requests, Error error) {
    if (requests.empty() || !can_be_repeated(requests)) return {Kind::final, std::move(error)};
    // The repeated request shows what became of it, because lock_id and key were chosen before.
    auto doubt = std::make_shared<InDoubt>(InDoubt{.name = name_of(requests.front()), .error = error});
    return {.kind = Kind::in_doubt, .error = std::move(error), .doubt = std::move(doubt)};
}

}  // namespace

Result<std::vector<Reply>> apply_batch(Server& server, std::span<const Request> requests,
                                       const std::optional<StoreId>& store_id, Sees sees,
                                       const base::CallBudget& budget,
                                       const std::function<void(const json::Node&)>& seen) {
    std::vector<Reply> all;
    for (const auto& [body, count] : batches_of(requests)) {
        const std::span<const Request> part = requests.subspan(all.size(), count);
        const auto attempt = [&](const AttemptTerms& terms) -> AttemptResult {
            const auto use = terms.wants_fresh_connection ? Server::Use::fresh : Server::Use::any;
            const auto answer = server.change("/v1/batch", body, store_id, use, budget);
            if (!answer) {
                const ChangeError& error = answer.error();
                if (error.may_have_acted && sees == Sees::only_durable)
                    if (auto granted = granted_meanwhile(server, part, budget)) return std::vector<Reply>{*granted};
                if (error.may_have_acted) return std::unexpected(in_doubt(part, error.error));
                return std::unexpected(AttemptError{error.was_idle ? Kind::connection_lost : Kind::final, error.error});
            }
            auto replies = read_replies_to(part, *answer);
            if (!replies) {
                const Error error = not_understood(server.address(), replies.error());
                return std::unexpected(AttemptError{Kind::final, {Errc::outcome_unknown, error.message}});
            }
            seen(*answer);
            return std::move(*replies);
        };
        auto replies = apply_with_retries(attempt, [&] { return budget.over(); });
        if (!replies && !all.empty())
            return fail(Errc::outcome_unknown,
                        "only a part of the batch was answered: " + replies.error().error.message);
        if (!replies) return std::unexpected(std::move(replies.error().error));
        std::ranges::move(*replies, std::back_inserter(all));
    }
    return all;
}

}  // namespace holdfast::stores::http
