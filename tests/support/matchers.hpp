#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/request.hpp"

#include <gmock/gmock.h>

#include <ostream>
#include <stdexcept>

namespace holdfast {

/// How failed assertions show these values. Found through the arguments' namespace.
void PrintTo(const Error& error, std::ostream* out);
void PrintTo(const LockStatus& status, std::ostream* out);
void PrintTo(const Outcome& outcome, std::ostream* out);
void PrintTo(const Reply& reply, std::ostream* out);
void PrintTo(const AuditEvent& event, std::ostream* out);
void PrintTo(Errc code, std::ostream* out);
void PrintTo(LockState state, std::ostream* out);
void PrintTo(EventKind kind, std::ostream* out);
void PrintTo(FencingToken token, std::ostream* out);
void PrintTo(const LockName& name, std::ostream* out);

namespace tests {

/// A result that is an error with `code`.
MATCHER_P(RefusedWith, code, "is refused with " + std::string(row_of(code).name)) {
    if (arg) {
        *result_listener << "which was granted";
        return false;
    }
    *result_listener << "which is " << row_of(arg.error().code).name << ": " << arg.error().message;
    return arg.error().code == code;
}

/// A result that is a value.
MATCHER(Granted, "is granted") {
    if (!arg) *result_listener << "which is " << row_of(arg.error().code).name << ": " << arg.error().message;
    return arg.has_value();
}

/// The value of `result`. A test in which it is an error fails right here.
template <class T>
T must(Result<T> result) {
    if (!result)
        throw std::runtime_error(std::string(row_of(result.error().code).name) + ": " + result.error().message);
    return std::move(*result);
}

/// Fails the test in which `result` is an error.
inline void must(const Result<void>& result) {
    if (!result)
        throw std::runtime_error(std::string(row_of(result.error().code).name) + ": " + result.error().message);
}

}  // namespace tests
}  // namespace holdfast
