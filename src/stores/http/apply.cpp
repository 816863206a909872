#include "stores/http/apply.hpp"

#include "stores/common/attempt.hpp"
#include "stores/http/codec.hpp"
#include "stores/http/read.hpp"

#include <algorithm>
#include <iterator>

namespace holdfast::stores::http {
namespace {

using Kind = AttemptError::Kind;

/// Requests that say the same again when they come twice. These two would be carried out a second time.
bool can_be_repeated(std::span<const Request> requests) {
    return std::ranges::none_of(requests, [](const Request& request) {
        return std::holds_alternative<ReportFenced>(request) || std::holds_alternative<Ask>(request);
    });
}

/// Whether every lock that `requests` acquire is held by the lease that they chose for it: then the repeated request
/// only tells of that grant. A lease that was granted and broken meanwhile would be granted a second time.
bool were_granted(Server& server, std::span<const Request> requests, const base::CallBudget& budget) {
    return std::ranges::all_of(requests, [&](const Request& request) {
        const auto* const acquire = std::get_if<Acquire>(&request);
        if (acquire == nullptr) return true;
        const auto lock = read_status(server, acquire->name, budget);
        return lock && lock->lease && lock->lease->lock_id == acquire->as.lock_id;
    });
}

AttemptError in_doubt(std::span<const Request> requests, Error error) {
    if (requests.empty() || !can_be_repeated(requests)) return {Kind::final, std::move(error)};
    // The repeated request shows what became of it, because lock_id and key were chosen before.
    auto doubt = std::make_shared<InDoubt>(InDoubt{.name = name_of(requests.front()), .error = error});
    return {.kind = Kind::in_doubt, .error = std::move(error), .doubt = std::move(doubt)};
}

}  // namespace

Result<std::vector<Reply>> apply_batch(Server& server, std::span<const Request> requests,
                                       const std::optional<StoreId>& store_id, const base::CallBudget& budget,
                                       const std::function<void(const json::Node&)>& seen) {
    std::vector<Reply> all;
    for (const auto& [body, count] : batches_of(requests)) {
        const std::span<const Request> part = requests.subspan(all.size(), count);
        const auto attempt = [&](const AttemptTerms& terms) -> AttemptResult {
            if (terms.doubt && !were_granted(server, part, budget))
                return std::unexpected(AttemptError{Kind::final, terms.doubt->error});
            const auto use = terms.wants_fresh_connection ? Server::Use::fresh : Server::Use::any;
            const auto answer = server.change("/v1/batch", body, store_id, use, budget);
            if (!answer) {
                const ChangeError& error = answer.error();
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
