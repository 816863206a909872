#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace holdfast::stores::redis {

/// A command as it goes over the wire: lengths before contents, so that no argument can become another one.
class Command {
public:
    Command() = default;
    Command(std::initializer_list<std::string_view> arguments) {
        for (const std::string_view argument : arguments) add(argument);
    }

    void add(std::string_view argument) {
        mark('$', argument.size(), body_);
        body_.append(argument).append("\r\n");
        ++count_;
    }
    void add(std::uint64_t number) {
        std::array<char, 20> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
        add(std::string_view(digits.data(), end));
    }
    /// Appends all arguments of `other`.
    void append(const Command& other) {
        body_ += other.body_;
        count_ += other.count_;
    }

    void write_to(std::string& out) const {
        mark('*', count_, out);
        out += body_;
    }

private:
    static void mark(char kind, std::size_t count, std::string& out) {
        std::array<char, 24> text{kind};
        char* const end = std::to_chars(text.data() + 1, text.data() + text.size() - 2, count).ptr;
        end[0] = '\r';
        end[1] = '\n';
        out.append(text.data(), end + 2);
    }

    std::string body_{};
    std::size_t count_ = 0;
};

}  // namespace holdfast::stores::redis
