#include "stores/common/attempt.hpp"

#include "stores/common/backoff.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace holdfast::stores {
namespace {

using std::chrono::milliseconds;
using Kind = AttemptError::Kind;

constexpr int most_conflicts = 5;
constexpr int most_preparations = 10;
constexpr Backoff after_conflict{milliseconds{10}, milliseconds{320}};

}  // namespace

AttemptResult apply_with_retries(const std::function<AttemptResult(const AttemptTerms&)>& attempt,
                                 const std::function<bool()>& is_over) {
    AttemptTerms terms;
    int conflicts = 0;
    int preparations = 0;
    bool reconnected = false;
    while (true) {
        AttemptResult result = attempt(terms);
        const bool is_sure = result && (!terms.doubt || std::ranges::all_of(*result, &Reply::has_value));
        if (is_sure) return result;
        const auto can_be_repeated = [&](Kind kind) {
            switch (kind) {
                case Kind::conflict: return ++conflicts <= most_conflicts;
                case Kind::prepared: return ++preparations <= most_preparations;
                case Kind::connection_lost: return !std::exchange(reconnected, true);
                case Kind::in_doubt: return !terms.doubt;
                case Kind::locks_busy:
                case Kind::one_spoils_all:
                case Kind::final: return false;
            }
            return false;
        };
        if (result || !can_be_repeated(result.error().kind) || is_over()) {
            if (terms.doubt) return std::unexpected(AttemptError{Kind::final, terms.doubt->error});
            return result;
        }
        const Kind kind = result.error().kind;
        if (kind == Kind::in_doubt) terms.doubt = std::move(result.error().doubt);
        if (kind == Kind::in_doubt || kind == Kind::connection_lost) terms.wants_fresh_connection = true;
        if (kind == Kind::conflict) std::this_thread::sleep_for(after_conflict.pause(conflicts));
    }
}

Result<std::vector<Reply>> to_result(AttemptResult result) {
    if (!result) return std::unexpected(std::move(result.error().error));
    return std::move(*result);
}

}  // namespace holdfast::stores
