#pragma once

#include "stores/mysql/codec.hpp"
#include "stores/mysql/schema.hpp"

#include <map>

namespace holdfast::stores::mysql {

/// The queues of some locks, as far as they were read.
class Queues {
public:
    /// Adds the query for the store's identity and the tickets of all of `wanted`, if they are few.
    [[nodiscard]] static Sql first_look(std::span<const Wanted> wanted, const Clock& clock);
    /// The identity, as `identity_in` gives it.
    [[nodiscard]] Result<std::optional<Identity>> take_first_look(Answer& answer, std::span<const Wanted> wanted);
    /// Whether the first look showed all tickets.
    [[nodiscard]] bool seen_all() const { return seen_all_; }

    /// Long queues: statements that ask for the few tickets that matter, and their answers.
    [[nodiscard]] static Sql second_look(std::span<const Wanted> wanted, Instant now);
    void take_second_look(std::span<Answer> answers);

    /// Adds the lock's queue to `view`. `record_corrupt` if one of its tickets cannot be read.
    [[nodiscard]] Result<void> add_to(LockView& view, const LockName& name, const Judging& judging) const;

    /// Those of the lock's tickets that were read, as they are stored.
    [[nodiscard]] std::vector<base::Bytes> stored_of(const LockName& name) const;

private:
    struct Stored {
        std::uint64_t number = 0;
        std::string lock_id{};
        Instant expires_at{};
        base::Bytes data{};
    };
    struct Queue {
        std::map<std::string, Stored, std::less<>> tickets{};  ///< By lock_id.
        std::uint64_t last_number = 0;
        std::optional<std::uint64_t> live{};  ///< If `tickets` are not all of them.
    };

    /// The ticket from this column on.
    void take(const Row& row, std::size_t column);
    [[nodiscard]] static Result<Unsealed<kernel::Ticket>> unsealed(const Stored& stored, const LockName& name,
                                                                   const Judging& judging);

    std::map<std::string, Queue, std::less<>> queues_{};
    bool seen_all_ = false;
};

/// Statements, each with its `;`, that write tickets. Nothing for changes without any.
[[nodiscard]] Sql put_tickets(std::span<const Change> changes, Instant now);

}  // namespace holdfast::stores::mysql
