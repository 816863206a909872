#pragma once

#include <charconv>
#include <cstdint>
#include <hiredis/hiredis.h>
#include <hiredis/read.h>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace holdfast::stores::redis {

/// One value of an answer. Borrowed from the `Message` that holds it.
class Value {
public:
    explicit Value(const redisReply* reply) : reply_(reply) {}

    [[nodiscard]] bool is_error() const { return reply_ != nullptr && reply_->type == REDIS_REPLY_ERROR; }
    [[nodiscard]] bool is_nil() const { return reply_ == nullptr || reply_->type == REDIS_REPLY_NIL; }
    /// Empty if it is no text.
    [[nodiscard]] std::string_view text() const {
        if (reply_ == nullptr || reply_->str == nullptr) return {};
        return {reply_->str, static_cast<std::size_t>(reply_->len)};
    }
    [[nodiscard]] std::span<const std::uint8_t> bytes() const {
        const std::string_view view = text();
        return {reinterpret_cast<const std::uint8_t*>(view.data()), view.size()};
    }
    /// The value of an integer, or of a text that is one.
    [[nodiscard]] std::optional<std::uint64_t> number() const {
        if (reply_ == nullptr) return std::nullopt;
        if (reply_->type == REDIS_REPLY_INTEGER)
            return reply_->integer < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(reply_->integer));
        std::uint64_t value = 0;
        const std::string_view view = text();
        const auto read = std::from_chars(view.data(), view.data() + view.size(), value);
        if (view.empty() || read.ec != std::errc{} || read.ptr != view.data() + view.size()) return std::nullopt;
        return value;
    }
    /// Zero if it is no list.
    [[nodiscard]] std::size_t size() const {
        return reply_ != nullptr && reply_->type == REDIS_REPLY_ARRAY ? static_cast<std::size_t>(reply_->elements) : 0;
    }
    /// Nil beyond the end.
    [[nodiscard]] Value operator[](std::size_t index) const {
        return Value(index < size() ? reply_->element[index] : nullptr);
    }

private:
    const redisReply* reply_;
};

/// An answer of the server.
class Message {
public:
    explicit Message(void* reply) : reply_(static_cast<redisReply*>(reply), freeReplyObject) {}
    [[nodiscard]] Value value() const { return Value(reply_.get()); }

private:
    std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply_;
};

}  // namespace holdfast::stores::redis
