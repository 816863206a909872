#pragma once

#include "holdfast/clock.hpp"
#include "server/exchange.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::server {

/// Where the answer to a request goes.
class Outlet {
public:
    virtual ~Outlet() = default;
    using Text = std::shared_ptr<const std::string>;
    virtual void push(Text text) = 0;
    /// The answer is complete.
    virtual void completed(int status) = 0;
    [[nodiscard]] virtual std::size_t unsent() const = 0;
    [[nodiscard]] virtual Instant wall() const = 0;
    [[nodiscard]] virtual bool is_stopping() const = 0;
};

/// A request of HTTP/1, and the bytes of its answer.
class HttpExchange final : public Exchange {
public:
    explicit HttpExchange(std::weak_ptr<Outlet> connection) : connection_(std::move(connection)) {}

    void reply(HttpReply reply) override;
    void begin_stream(HttpReply head) override;
    void write(const Chunk& chunk) override;
    [[nodiscard]] std::size_t unsent() const override;
    void on_drained(std::function<void()> drained) override { drained_ = std::move(drained); }
    void end_stream() override;
    void on_gone(std::function<void()> gone) override {
        if (state == State::is_complete) return gone();
        gone_ = std::move(gone);
    }

    enum class State { waits, streams, is_complete };
    State state = State::waits;
    bool keeps_alive = true;
    bool is_http10 = false;
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

    [[nodiscard]] bool has_listener() const { return static_cast<bool>(gone_); }
    void tell_gone() {
        if (state == State::is_complete) return;
        state = State::is_complete;
        drained_ = nullptr;
        if (const auto gone = std::exchange(gone_, nullptr)) gone();
    }
    void tell_drained() {
        if (const auto drained = drained_) drained();
    }
    void forget_callbacks() {
        gone_ = nullptr;
        drained_ = nullptr;
    }

private:
    [[nodiscard]] std::string head_of(const HttpReply& reply, std::optional<std::size_t> length) const;

    std::weak_ptr<Outlet> connection_;
    std::function<void()> gone_{};
    std::function<void()> drained_{};
};

}  // namespace holdfast::server
