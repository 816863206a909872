#pragma once

#include "holdfast/lease.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::stores::etcd {

/// Keys from `begin` to before `end`; an empty `end` means `begin` alone.
struct KeyRange {
    std::string begin;
    std::string end{};
};

/// The keys below the store's prefix:
///
/// | key | value |
/// |---|---|
/// | `meta` | format and store_id |
/// | `used` | there has been a lock |
/// | `l/NAME` | the record of the lock |
/// | `q/NAME\0NUMBER` | a place in its queue |
/// | `t/NAME\0LOCK_ID` | the NUMBER of that waiter's place |
/// | `a/NAME\0SEQ` | an event of its audit log |
///
/// A name has no control characters, so `\0` ends it: no name reaches into the keys of another. Numbers have
/// 16 hexadecimal digits, so that the order of keys is theirs.
class Keys {
public:
    explicit Keys(const std::string& prefix) : base_(prefix + "/") {}

    [[nodiscard]] std::string meta() const { return base_ + "meta"; }
    /// Written with the first lock. If it is there and no lock is, the locks were removed.
    [[nodiscard]] std::string used() const { return base_ + "used"; }
    /// A key that never exists, and that a user of the store may change.
    [[nodiscard]] std::string unused() const { return base_ + "unused"; }

    [[nodiscard]] std::string record(const LockName& name) const { return base_ + "l/" + name.text(); }
    /// The records of the names that begin with `name_prefix` and come after `after`. Empty if it ends before it
    /// begins.
    [[nodiscard]] KeyRange records(std::string_view name_prefix, std::string_view after = {}) const;
    /// Empty if the key is not that of a record.
    [[nodiscard]] std::optional<std::string> name_in_record(std::string_view key) const;

    [[nodiscard]] std::string ticket(const LockName& name, std::uint64_t number) const;
    [[nodiscard]] KeyRange tickets(const LockName& name) const;
    /// The tickets of these locks and of all between them.
    [[nodiscard]] KeyRange tickets_between(const LockName& first, const LockName& last) const;
    [[nodiscard]] std::optional<std::string> name_in_ticket(std::string_view key) const;
    [[nodiscard]] std::string ticket_index(const LockName& name, const LockId& lock_id) const;

    /// Of all waiters of the lock.
    [[nodiscard]] KeyRange ticket_indexes(const LockName& name) const;

    [[nodiscard]] std::string event(const LockName& name, std::uint64_t seq) const;
    /// The events with a higher seq.
    [[nodiscard]] KeyRange events(const LockName& name, std::uint64_t after_seq = 0) const;
    /// The events with a higher seq than `after_seq`, up to `through`.
    [[nodiscard]] KeyRange events_through(const LockName& name, std::uint64_t after_seq, std::uint64_t through) const;
    [[nodiscard]] KeyRange all_events() const;

private:
    std::string base_;
};

/// The digits in which a number stands in a key.
[[nodiscard]] std::string digits_of(std::uint64_t number);
[[nodiscard]] std::optional<std::uint64_t> number_in(std::string_view digits);

}  // namespace holdfast::stores::etcd
