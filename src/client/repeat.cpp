#include "client/repeat.hpp"

namespace holdfast::client {
namespace {

/// Break, Answer and Expire name what the caller saw. After a lost answer they would be refused, although they
/// were the ones that changed it. A ReportFenced would be told twice.
bool repeat_is_harmless(const Request& request) {
    return !std::holds_alternative<Break>(request) && !std::holds_alternative<Answer>(request) &&
           !std::holds_alternative<Expire>(request) && !std::holds_alternative<ReportFenced>(request);
}

}  // namespace

Reply apply_or_repeat(Store& store, const Request& request, const Clock& clock, std::chrono::milliseconds timeout) {
    Reply reply = store.apply_one(request, Deadline::in(clock, timeout));
    const bool is_unknown = !reply && reply.error().code == Errc::outcome_unknown;
    if (!is_unknown || !repeat_is_harmless(request)) return reply;
    Reply again = store.apply_one(request, Deadline::in(clock, timeout));
    return !again && again.error().code == Errc::store_unavailable ? reply : again;
}

}  // namespace holdfast::client
