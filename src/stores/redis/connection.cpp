#include "stores/redis/connection.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::stores::redis {
namespace {

constexpr std::size_t buffer_size = std::size_t{16} << 10U;

struct Refusal {
    std::string_view code;
    Errc errc;
    std::string_view meaning;
};

/// Redis returns these errors before the first write of a script, so nothing was changed.
constexpr std::array refusals{
    Refusal{"OOM", Errc::store_unavailable, "has no memory left"},
    Refusal{"LOADING", Errc::store_unavailable, "is still reading its data"},
    Refusal{"READONLY", Errc::store_unavailable, "is a replica, and only its master can be used"},
    Refusal{"MASTERDOWN", Errc::store_unavailable, "is a replica without its master"},
    Refusal{"BUSY", Errc::store_unavailable, "is busy with a script of somebody else"},
    Refusal{"MISCONF", Errc::store_unavailable, "cannot write to its disk"},
    Refusal{"NOREPLICAS", Errc::store_unavailable, "has fewer replicas than it is told to have"},
    Refusal{"CLUSTERDOWN", Errc::store_unavailable, "belongs to a cluster that is down"},
    Refusal{"TRYAGAIN", Errc::store_unavailable, "belongs to a cluster that is being changed"},
    Refusal{"MOVED", Errc::store_unavailable, "is not the node of its cluster that has this prefix"},
    Refusal{"ASK", Errc::store_unavailable, "belongs to a cluster that is being changed"},
    Refusal{"NOAUTH", Errc::denied, "asks for a password"},
    Refusal{"WRONGPASS", Errc::denied, "refuses the user or the password"},
    Refusal{"NOPERM", Errc::denied, "does not permit this user what the store needs"},
    Refusal{"DENIED", Errc::denied, "lets in nobody from another host (protected mode)"},
    Refusal{"ERR max number of clients", Errc::store_unavailable, "has too many clients"},
    Refusal{"ERR DB index", Errc::config, "has no database with the number of the URL"},
    Refusal{"ERR invalid password", Errc::denied, "refuses the password"},
    Refusal{"ERR Client sent AUTH", Errc::denied, "has no password, but was given one"},
    Refusal{"ERR AUTH", Errc::denied, "has no password, but was given one"},
};

/// Redis 6 wraps the error of a command inside a script: `ERR Error running script (…): … -OOM command …`.
bool says(std::string_view text, std::string_view code) {
    if (text.starts_with(code)) return true;
    return text.find(fmt::format(" -{} ", code)) != std::string_view::npos;
}

}  // namespace

std::optional<Error> known_refusal(const Address& address, std::string_view text) {
    for (const Refusal& refusal : refusals)
        if (says(text, refusal.code))
            return Error{refusal.errc, fmt::format("Redis at {} {}; nothing was changed ({})", address.place(),
                                                   refusal.meaning, printable(address.scrubbed(text)))};
    return std::nullopt;
}

Error refusal(const Address& address, std::string_view text) {
    if (auto known = known_refusal(address, text)) return std::move(*known);
    // Up to Redis 7.0 the error of a script that lacks a right has no code.
    const bool is_denied = text.find("can't run this command") != std::string_view::npos;
    const Errc code = is_denied                 ? Errc::denied
                      : says(text, "WRONGTYPE") ? Errc::format_unsupported
                                                : Errc::store_unavailable;
    return {code, fmt::format("Redis at {} answers: {}", address.place(), printable(address.scrubbed(text)))};
}

Connection::Connection(Stream stream) : stream_(std::move(stream)), reader_(redisReaderCreate(), redisReaderFree) {
    if (!reader_) throw std::bad_alloc();
}

Result<std::unique_ptr<Connection>> Connection::open(const Address& address, const base::CallBudget& budget) {
    auto stream = Stream::open(address, budget);
    if (!stream) return std::unexpected(stream.error());
    std::unique_ptr<Connection> connection(new Connection(std::move(*stream)));
    if (auto known = connection->introduce(address, budget); !known) return std::unexpected(known.error());
    return connection;
}

Result<void> Connection::introduce(const Address& address, const base::CallBudget& budget) {
    std::vector<Command> commands;
    if (address.user) commands.push_back({"AUTH", *address.user, *address.password});
    if (!address.user && address.password) commands.push_back({"AUTH", *address.password});
    if (address.database != "0") commands.push_back({"SELECT", address.database});
    commands.push_back({"INFO", "replication"});
    const auto answers = exchange(commands, budget);
    if (!answers)
        return fail(Errc::store_unavailable,
                    fmt::format("Redis at {} is not reached: {}", address.place(), answers.error().why));
    for (const Message& answer : *answers)
        if (answer.value().is_error()) return std::unexpected(refusal(address, answer.value().text()));
    is_replica_ = answers->back().value().text().find("role:master") == std::string_view::npos;
    return {};
}

std::expected<std::optional<Message>, std::string> Connection::next() {
    void* found = nullptr;
    if (redisReaderGetReply(reader_.get(), &found) != REDIS_OK)
        return std::unexpected(std::string("it does not speak Redis: ") + reader_->errstr);
    if (found == nullptr) return std::nullopt;
    return Message(found);
}

std::expected<std::optional<Message>, std::string> Connection::receive_now() {
    std::array<char, buffer_size> buffer;
    while (true) {
        auto message = next();
        if (!message || *message) return message;
        const auto count = stream_.read_now(buffer);
        if (!count) return std::unexpected(count.error());
        if (*count == 0) return std::nullopt;
        redisReaderFeed(reader_.get(), buffer.data(), *count);
    }
}

std::expected<Message, std::string> Connection::receive(const base::CallBudget& budget) {
    std::array<char, buffer_size> buffer;
    while (true) {
        auto message = next();
        if (!message) return std::unexpected(message.error());
        if (*message) return std::move(**message);
        const auto count = stream_.read(buffer, budget);
        if (!count) return std::unexpected(count.error());
        redisReaderFeed(reader_.get(), buffer.data(), *count);
    }
}

std::expected<void, std::string> Connection::send(const Command& command, const base::CallBudget& budget) {
    std::string bytes;
    command.write_to(bytes);
    return stream_.write(bytes, budget);
}

std::expected<std::vector<Message>, ExchangeError> Connection::exchange(std::span<const Command> commands,
                                                                        const base::CallBudget& budget) {
    std::string bytes;
    for (const Command& command : commands) command.write_to(bytes);
    // A server runs a command when it has received all of it, so one command that was cut off had no effect. Several
    // commands at once only read.
    is_usable_ = false;
    if (auto sent = stream_.write(bytes, budget); !sent) return std::unexpected(ExchangeError{false, sent.error()});
    std::vector<Message> answers;
    answers.reserve(commands.size());
    while (answers.size() < commands.size()) {
        auto answer = receive(budget);
        if (!answer) return std::unexpected(ExchangeError{true, answer.error()});
        answers.push_back(std::move(*answer));
    }
    is_usable_ = true;
    return answers;
}

}  // namespace holdfast::stores::redis
