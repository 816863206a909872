#pragma once

#include "holdfast/error.hpp"
#include "stores/etcd/keys.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The messages of etcd's gRPC interface, in Protocol Buffers. A field with its default value is left out: a
/// transaction that did not succeed does not say so.
namespace holdfast::stores::etcd {

using Revision = std::int64_t;

/// The paths of the methods that we call.
namespace method {
inline constexpr std::string_view txn = "/etcdserverpb.KV/Txn";
inline constexpr std::string_view watch = "/etcdserverpb.Watch/Watch";
inline constexpr std::string_view authenticate = "/etcdserverpb.Auth/Authenticate";
inline constexpr std::string_view status = "/etcdserverpb.Maintenance/Status";
inline constexpr std::string_view alarm = "/etcdserverpb.Maintenance/Alarm";
inline constexpr std::string_view member_list = "/etcdserverpb.Cluster/MemberList";
}  // namespace method

/// A request whose fields all have their defaults.
inline constexpr std::string_view no_fields{};

/// Read keys, in their order.
struct Get {
    KeyRange keys;
    std::uint64_t limit = 0;  ///< 0: all.
    bool without_values = false;
    bool last_first = false;  ///< etcd then reads the whole range, whatever the limit.
    Revision changed_since =
        0;  ///< Only keys that changed in this revision or later. Here, too, etcd reads the whole range.
};

/// A transaction: if all comparisons hold, the one list of operations, otherwise the other.
class Txn {
public:
    /// etcd's own limit on each of the three lists, unless somebody configured another.
    static constexpr std::size_t most_operations = 128;

    /// The key was last changed in that revision; 0: it is not there.
    void if_unchanged(std::string_view key, Revision changed_in);
    /// No key of the range is there.
    void if_absent(const KeyRange& keys);

    void put(std::string_view key, std::string_view value);
    void remove(std::string_view key);
    /// One operation, however many keys there are.
    void remove_all(const KeyRange& keys);
    void get(const Get& get);
    void otherwise_get(const Get& get);
    /// A transaction that only reads is answered by one node from its own state, which can be stale after a pause in
    /// etcd 3.4.20 to 3.4.41. One that might write is ordered by the cluster's log. `unused_key` is one that is never
    /// there.
    void order_by_log(std::string_view unused_key);

    [[nodiscard]] std::size_t operations() const { return operations_; }
    [[nodiscard]] std::string message() const { return compare_ + success_ + failure_; }
    /// Its reads alone, as one node answers them without asking the others: it need not be in a majority, and what it
    /// knows may be old.
    [[nodiscard]] std::string message_to_one_node() const;

private:
    // Each a part of the message.
    std::string compare_{};
    std::string success_{};
    std::string failure_{};
    std::size_t operations_ = 0;  ///< In the success list.
    std::vector<Get> gets_{};     ///< Of that list.
};

struct KeyValue {
    std::string key{};
    std::string value{};
    Revision changed_in = 0;
};

struct Found {
    std::vector<KeyValue> keys{};
    std::uint64_t count = 0;  ///< In the whole range, whatever the limit.
};

struct TxnAnswer {
    bool succeeded = false;
    Revision revision = 0;
    bool store_was_there = false;  ///< As known when the request was sent; see `Remote::exists`.
    std::vector<Found> found{};    ///< One for each operation; empty for those that do not read.
};
[[nodiscard]] Result<TxnAnswer> read_txn(std::string_view message);

[[nodiscard]] std::string login_message(std::string_view user, std::string_view password);
/// Empty if the answer has none.
[[nodiscard]] std::string read_token(std::string_view message);

/// One node, as it sees itself.
struct NodeStatus {
    std::string version{};
    std::uint64_t db_size = 0;
    bool has_leader = false;
    std::vector<std::string> errors{};
};
[[nodiscard]] NodeStatus read_status(std::string_view message);

[[nodiscard]] std::size_t count_members(std::string_view message);
/// `NOSPACE`, `CORRUPT`.
[[nodiscard]] std::vector<std::string> read_alarms(std::string_view message);

/// Chosen by the client; unique on one stream.
using WatchId = std::int64_t;

/// A watch that begins when etcd creates it: events of a watch that begins in the past are sent only ten times a
/// second.
[[nodiscard]] std::string watch_message(WatchId id, std::string_view key, bool only_deletes);
[[nodiscard]] std::string cancel_message(WatchId id);

/// One message on a stream of watches.
struct WatchNews {
    WatchId id = 0;  ///< Negative: of no watch of ours, so the stream cannot be used.
    bool created = false;
    Revision revision = 0;           ///< The newest one; a watch that was created begins after it.
    bool over = false;               ///< Cancelled or compacted away: watch again after looking.
    std::vector<KeyValue> events{};  ///< A deleted key has no value.
};
/// A message that cannot be read becomes one that belongs to no watch, with `over` set.
[[nodiscard]] WatchNews read_news(std::string_view message);

}  // namespace holdfast::stores::etcd
