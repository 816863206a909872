#include "client/repeat.hpp"

namespace holdfast::client {
namespace {

/// Break and Answer name what the operator saw. After a lost answer they would be refused, although they
/// were the ones that changed it.
bool repeat_is_harmless(const Request& request) {
    return !std::holds_alternative<Break>(request) && !std::holds_alternative<Answer>(request);
}

}  // namespace

Reply apply_or_repeat(Store& store, const Request& request, const Clock& clock, std::chrono::milliseconds patience) {
    Reply reply = store.apply_one(request, Deadline::in(clock, patience));
    const bool is_unknown = !reply && reply.error().code == Errc::outcome_unknown;
    if (!is_unknown || !repeat_is_harmless(request)) return reply;
    Reply again = store.apply_one(request, Deadline::in(clock, patience));
    return !again && again.error().code == Errc::store_unavailable ? reply : again;
}

}  // namespace holdfast::client
