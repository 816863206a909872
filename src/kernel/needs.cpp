// What a step reads beside the record of its lock.
#include "kernel/step.hpp"

namespace holdfast::kernel {

const std::vector<LockName>& others_of(const Request& request) {
    static const std::vector<LockName> none;
    if (const auto* acquire = std::get_if<Acquire>(&request)) return acquire->unless_held;
    if (const auto* check = std::get_if<Check>(&request)) return check->unless_held;
    return none;
}

std::optional<LockId> ticket_of(const Request& request) {
    if (const auto* acquire = std::get_if<Acquire>(&request)) return acquire->as.lock_id;
    if (const auto* cancel = std::get_if<Cancel>(&request)) return cancel->as.lock_id;
    // The waiter that is handed the lock leaves the queue.
    if (const auto* transfer = std::get_if<Transfer>(&request)) return transfer->to_as.lock_id;
    if (const auto* answer = std::get_if<Answer>(&request)) return answer->ask_id;
    return std::nullopt;
}

}  // namespace holdfast::kernel
