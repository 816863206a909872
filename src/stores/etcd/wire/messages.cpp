#include "stores/etcd/wire/messages.hpp"

#include "stores/etcd/wire/protobuf.hpp"

namespace holdfast::stores::etcd {
namespace {

// The numbers are those of etcd's rpc.proto and kv.proto.

constexpr std::uint32_t header_field = 1;

namespace operation {
constexpr std::uint32_t range = 1;
constexpr std::uint32_t put = 2;
constexpr std::uint32_t delete_range = 3;
}  // namespace operation

namespace list {
constexpr std::uint32_t compare = 1;
constexpr std::uint32_t success = 2;
constexpr std::uint32_t failure = 3;
}  // namespace list

/// The subjects of a comparison, which tests for equality by default.
namespace target {
constexpr std::uint64_t create = 1;
constexpr std::uint64_t mod = 2;
}  // namespace target

std::string range_of(const KeyRange& keys) {
    std::string range;
    append_bytes(range, 1, keys.begin);
    if (!keys.end.empty()) append_bytes(range, 2, keys.end);
    return range;
}

void append_operation(std::string& out, std::uint32_t list, std::uint32_t operation, std::string_view request) {
    std::string one;
    append_bytes(one, operation, request);
    append_bytes(out, list, one);
}

enum class Read { by_majority, by_one_node };

void append_get(std::string& out, std::uint32_t list, const Get& get, Read read = Read::by_majority) {
    constexpr std::uint64_t descend = 2;
    std::string range = range_of(get.keys);
    if (get.limit > 0) append_number(range, 3, get.limit);
    // By key, which is the default.
    if (get.last_first) append_number(range, 5, descend);
    if (read == Read::by_one_node) append_number(range, 7, 1);
    if (get.without_values) append_number(range, 8, 1);
    if (get.changed_since > 0) append_number(range, 10, static_cast<std::uint64_t>(get.changed_since));
    append_operation(out, list, operation::range, range);
}

/// Calls `use` for each field. False if the message cannot be read to its end.
template <class Use>
bool for_each_field(std::string_view message, Use use) {
    Fields fields(message);
    while (const auto field = fields.next()) use(*field);
    return fields.ok();
}

bool read_key_value(std::string_view message, KeyValue& into) {
    return for_each_field(message, [&](const Field& field) {
        if (field.number == 1) into.key = field.bytes;
        if (field.number == 3) into.changed_in = static_cast<Revision>(field.value);
        if (field.number == 5) into.value = field.bytes;
    });
}

bool read_header(std::string_view message, Revision& revision) {
    return for_each_field(message, [&](const Field& field) {
        if (field.number == 3) revision = static_cast<Revision>(field.value);
    });
}

bool read_found(std::string_view message, Found& found) {
    bool ok = true;
    const bool read = for_each_field(message, [&](const Field& field) {
        if (field.number == 2) ok = read_key_value(field.bytes, found.keys.emplace_back()) && ok;
        if (field.number == 4) found.count = field.value;
    });
    return read && ok;
}

}  // namespace

void Txn::if_unchanged(std::string_view key, Revision changed_in) {
    std::string one;
    append_number(one, 2, target::mod);
    append_bytes(one, 3, key);
    // A key that is not there compares as if it had been changed in revision 0.
    append_number(one, 6, static_cast<std::uint64_t>(changed_in));
    append_bytes(compare_, list::compare, one);
}

void Txn::if_absent(const KeyRange& keys) {
    std::string one;
    append_number(one, 2, target::create);
    append_bytes(one, 3, keys.begin);
    append_number(one, 5, 0);
    append_bytes(one, 64, keys.end);
    append_bytes(compare_, list::compare, one);
}

void Txn::put(std::string_view key, std::string_view value) {
    ++operations_;
    std::string request;
    append_bytes(request, 1, key);
    append_bytes(request, 2, value);
    append_operation(success_, list::success, operation::put, request);
}

void Txn::remove(std::string_view key) { remove_all({.begin = std::string(key)}); }

void Txn::remove_all(const KeyRange& keys) {
    ++operations_;
    append_operation(success_, list::success, operation::delete_range, range_of(keys));
}

void Txn::get(const Get& get) {
    ++operations_;
    gets_.push_back(get);
    append_get(success_, list::success, get);
}

std::string Txn::message_to_one_node() const {
    std::string message;
    for (const Get& get : gets_) append_get(message, list::success, get, Read::by_one_node);
    return message;
}

void Txn::otherwise_get(const Get& get) { append_get(failure_, list::failure, get); }

void Txn::order_by_log(std::string_view unused_key) {
    // Without comparisons this branch is never taken, but the user needs the right to it.
    append_operation(failure_, list::failure, operation::delete_range, range_of({.begin = std::string(unused_key)}));
}

Result<TxnAnswer> read_txn(std::string_view message) {
    TxnAnswer answer;
    bool has_header = false;
    bool ok = true;
    const auto read_response = [&](std::string_view response) {
        Found& found = answer.found.emplace_back();
        return for_each_field(response, [&](const Field& field) {
            if (field.number == operation::range) ok = read_found(field.bytes, found) && ok;
        });
    };
    const bool read = for_each_field(message, [&](const Field& field) {
        if (field.number == header_field) {
            has_header = true;
            ok = read_header(field.bytes, answer.revision) && ok;
        }
        if (field.number == 2) answer.succeeded = field.value != 0;
        if (field.number == 3) ok = read_response(field.bytes) && ok;
    });
    if (!read || !ok || !has_header)
        return fail(Errc::store_unavailable, "the answer is not one of etcd's to a transaction");
    return answer;
}

std::string login_message(std::string_view user, std::string_view password) {
    std::string message;
    append_bytes(message, 1, user);
    append_bytes(message, 2, password);
    return message;
}

std::string read_token(std::string_view message) {
    std::string token;
    for_each_field(message, [&](const Field& field) {
        if (field.number == 2) token = field.bytes;
    });
    return token;
}

NodeStatus read_status(std::string_view message) {
    NodeStatus status;
    for_each_field(message, [&](const Field& field) {
        if (field.number == 2) status.version = field.bytes;
        if (field.number == 3) status.db_size = field.value;
        if (field.number == 4) status.has_leader = field.value != 0;
        if (field.number == 8) status.errors.emplace_back(field.bytes);
    });
    return status;
}

std::size_t count_members(std::string_view message) {
    std::size_t members = 0;
    for_each_field(message, [&](const Field& field) { members += field.number == 2 ? 1U : 0U; });
    return members;
}

std::vector<std::string> read_alarms(std::string_view message) {
    constexpr std::uint64_t no_space = 1;
    constexpr std::uint64_t corrupt = 2;
    std::vector<std::string> alarms;
    for_each_field(message, [&](const Field& member) {
        if (member.number != 2) return;
        std::uint64_t kind = 0;
        for_each_field(member.bytes, [&](const Field& field) {
            if (field.number == 2) kind = field.value;
        });
        alarms.emplace_back(kind == no_space ? "NOSPACE" : kind == corrupt ? "CORRUPT" : "of an unknown kind");
    });
    return alarms;
}

std::string watch_message(WatchId id, std::string_view key, bool only_deletes) {
    // A list of one filter, whose number is 0.
    constexpr std::string_view no_puts("\0", 1);
    std::string create;
    append_bytes(create, 1, key);
    if (only_deletes) append_bytes(create, 5, no_puts);
    append_number(create, 7, static_cast<std::uint64_t>(id));
    std::string message;
    append_bytes(message, 1, create);
    return message;
}

std::string cancel_message(WatchId id) {
    std::string cancel;
    append_number(cancel, 1, static_cast<std::uint64_t>(id));
    std::string message;
    append_bytes(message, 2, cancel);
    return message;
}

WatchNews read_news(std::string_view message) {
    WatchNews news;
    bool ok = true;
    const auto read_event = [&](std::string_view event) {
        bool has_key = false;
        // An event that is a change has no type field, since its type is 0.
        const bool read = for_each_field(event, [&](const Field& field) {
            if (field.number != 2) return;
            has_key = true;
            ok = read_key_value(field.bytes, news.events.emplace_back()) && ok;
        });
        return read && has_key;
    };
    const bool read = for_each_field(message, [&](const Field& field) {
        if (field.number == header_field) ok = read_header(field.bytes, news.revision) && ok;
        if (field.number == 2) news.id = static_cast<WatchId>(field.value);
        if (field.number == 3) news.created = field.value != 0;
        const bool is_canceled = field.number == 4 && field.value != 0;
        const bool is_compacted = field.number == 5 && field.value != 0;
        news.over = news.over || is_canceled || is_compacted;
        if (field.number == 11) ok = read_event(field.bytes) && ok;
    });
    if (!read || !ok) return {.id = -1, .over = true};
    return news;
}

}  // namespace holdfast::stores::etcd
