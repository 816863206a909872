#pragma once

#include "server/authorize.hpp"
#include "server/http.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace holdfast::server {

/// One request and its answer. Only on the loop's thread.
class Exchange {
public:
    virtual ~Exchange() = default;

    HttpRequest request{};
    Identity who{};
    std::string_view route{};  ///< The pattern that its path matched.

    /// The whole answer, once. Nothing happens if the client is gone.
    virtual void reply(HttpReply reply) = 0;

    /// Instead of `reply`: the beginning of an answer whose end is not known.
    virtual void begin_stream(HttpReply head) = 0;
    /// Continues it. Several clients may share one text.
    virtual void write(std::shared_ptr<const std::string> text) = 0;
    /// Bytes that were written and not yet taken by the client.
    [[nodiscard]] virtual std::size_t unsent() const = 0;
    /// Called when everything was sent that was written so far.
    virtual void on_drained(std::function<void()> drained) = 0;
    virtual void end_stream() = 0;

    /// Called once, if the client hangs up before its answer is complete; at once, if it is gone.
    virtual void on_gone(std::function<void()> gone) = 0;
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace holdfast::server
