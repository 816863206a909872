#include "client/limits.hpp"

#include "kernel/refusal.hpp"

namespace holdfast::client {

std::optional<Error> beyond_limits(const Request& request) { return kernel::beyond_limits(request); }

}  // namespace holdfast::client
