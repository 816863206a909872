#pragma once

#include "server/authorize.hpp"
#include "server/http.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::server {

/// Text for a stream, already as a chunk of HTTP/1.1: made once, however many clients are sent it.
class Chunk {
public:
    Chunk() = default;
    explicit Chunk(std::string_view text);

    [[nodiscard]] bool is_empty() const { return written_ == nullptr; }
    [[nodiscard]] const std::shared_ptr<const std::string>& written() const { return written_; }
    [[nodiscard]] std::string_view text() const;

private:
    std::shared_ptr<const std::string> written_{};
    std::size_t begin_ = 0;  ///< Of the text.
};

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
    /// Continues it.
    virtual void write(const Chunk& chunk) = 0;
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
