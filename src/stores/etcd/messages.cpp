#include "stores/etcd/messages.hpp"

#include "stores/etcd/base64.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <charconv>
#include <iterator>

namespace holdfast::stores::etcd {
namespace {

namespace json = boost::json;

void open_item(std::string& list, std::string_view beginning) {
    if (!list.empty()) list += ',';
    list += beginning;
}

void append_field(std::string& out, std::string_view name, std::string_view bytes) {
    out += '"';
    out += name;
    out += "\":\"";
    append_base64(out, bytes);
    out += '"';
}

void append_get(std::string& list, const Get& get) {
    open_item(list, R"({"request_range":{)");
    append_field(list, "key", get.keys.begin);
    if (!get.keys.end.empty()) {
        list += ',';
        append_field(list, "range_end", get.keys.end);
    }
    if (get.limit > 0) fmt::format_to(std::back_inserter(list), R"(,"limit":"{}")", get.limit);
    if (get.without_values) list += R"(,"keys_only":true)";
    if (get.last_first) list += R"(,"sort_order":"DESCEND","sort_target":"KEY")";
    list += "}}";
}

/// Nothing in an answer is taken for granted: what is not there, or of another kind, reads as its default.
const json::value* field(const json::value& value, std::string_view name) {
    const json::object* object = value.if_object();
    return object == nullptr ? nullptr : object->if_contains(name);
}

std::string_view text_in(const json::value& value, std::string_view name) {
    const json::value* found = field(value, name);
    if (found == nullptr || !found->is_string()) return {};
    return found->get_string();
}

template <class Number>
Number number_in(const json::value& value, std::string_view name) {
    const json::value* found = field(value, name);
    if (found == nullptr) return 0;
    if (found->is_int64()) return static_cast<Number>(found->get_int64());
    if (!found->is_string()) return 0;
    const std::string_view digits = found->get_string();
    Number number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

bool flag_in(const json::value& value, std::string_view name) {
    const json::value* found = field(value, name);
    return found != nullptr && found->is_bool() && found->get_bool();
}

const json::array& list_in(const json::value& value, std::string_view name) {
    static const json::array none;
    const json::value* found = field(value, name);
    return found != nullptr && found->is_array() ? found->get_array() : none;
}

/// Parsed into one arena: the document is read once and thrown away.
class Document {
public:
    explicit Document(std::string_view text) {
        boost::system::error_code error;
        value_ = json::parse(text, error, &memory_);
        if (error) value_ = nullptr;
    }
    [[nodiscard]] const json::value& root() const { return value_; }
    [[nodiscard]] bool is_object() const { return value_.is_object(); }

private:
    json::monotonic_resource memory_{};
    json::value value_{};
};

std::optional<KeyValue> key_value_in(const json::value& value) {
    auto key = from_base64(text_in(value, "key"));
    auto content = from_base64(text_in(value, "value"));
    if (!key || !content) return std::nullopt;
    return KeyValue{std::move(*key), std::move(*content), number_in<Revision>(value, "mod_revision")};
}

}  // namespace

void Txn::if_unchanged(std::string_view key, Revision changed_in) {
    open_item(compare_, "{");
    append_field(compare_, "key", key);
    // A key that is not there compares as if it had been changed in revision 0.
    fmt::format_to(std::back_inserter(compare_), R"(,"target":"MOD","mod_revision":"{}"}})", changed_in);
}

void Txn::if_absent(const KeyRange& keys) {
    open_item(compare_, "{");
    append_field(compare_, "key", keys.begin);
    compare_ += ',';
    append_field(compare_, "range_end", keys.end);
    compare_ += R"(,"target":"CREATE","create_revision":"0"})";
}

void Txn::put(std::string_view key, std::string_view value) {
    ++operations_;
    open_item(success_, R"({"request_put":{)");
    append_field(success_, "key", key);
    success_ += ',';
    append_field(success_, "value", value);
    success_ += "}}";
}

void Txn::remove(std::string_view key) {
    ++operations_;
    open_item(success_, R"({"request_delete_range":{)");
    append_field(success_, "key", key);
    success_ += "}}";
}

void Txn::remove_all(const KeyRange& keys) {
    ++operations_;
    open_item(success_, R"({"request_delete_range":{)");
    append_field(success_, "key", keys.begin);
    success_ += ',';
    append_field(success_, "range_end", keys.end);
    success_ += "}}";
}

void Txn::get(const Get& get) {
    ++operations_;
    append_get(success_, get);
}

void Txn::otherwise_get(const Get& get) { append_get(failure_, get); }

void Txn::order_by_log(std::string_view unused_key) {
    // Without comparisons this branch is never taken. The user must be allowed to all the same.
    open_item(failure_, R"({"request_delete_range":{)");
    append_field(failure_, "key", unused_key);
    failure_ += "}}";
}

std::string Txn::text() const {
    return fmt::format(R"({{"compare":[{}],"success":[{}],"failure":[{}]}})", compare_, success_, failure_);
}

Result<TxnAnswer> read_txn(std::string_view body) {
    const Document document(body);
    const json::value* header = field(document.root(), "header");
    if (header == nullptr) return fail(Errc::store_unavailable, "the answer is not one of etcd's to a transaction");
    TxnAnswer answer;
    answer.succeeded = flag_in(document.root(), "succeeded");
    answer.revision = number_in<Revision>(*header, "revision");
    for (const json::value& response : list_in(document.root(), "responses")) {
        Found& found = answer.found.emplace_back();
        const json::value* range = field(response, "response_range");
        if (range == nullptr) continue;
        found.count = number_in<std::uint64_t>(*range, "count");
        for (const json::value& one : list_in(*range, "kvs")) {
            auto key_value = key_value_in(one);
            if (!key_value) return fail(Errc::store_unavailable, "an answer of etcd is not base64");
            found.keys.push_back(std::move(*key_value));
        }
    }
    return answer;
}

Refusal read_refusal(std::string_view body) {
    const Document document(body);
    std::string_view text = text_in(document.root(), "message");
    if (text.empty()) text = text_in(document.root(), "error");
    return {number_in<int>(document.root(), "code"), std::string(text)};
}

std::string login_text(std::string_view user, std::string_view password) {
    return json::serialize(json::object{{"name", user}, {"password", password}});
}

std::string read_token(std::string_view body) { return std::string(text_in(Document(body).root(), "token")); }

NodeStatus read_status(std::string_view body) {
    const Document document(body);
    const json::value& root = document.root();
    NodeStatus status{std::string(text_in(root, "version")),
                      number_in<std::uint64_t>(root, "dbSize"),
                      number_in<std::uint64_t>(root, "leader") != 0,
                      {}};
    for (const json::value& error : list_in(root, "errors"))
        if (error.is_string()) status.errors.emplace_back(error.get_string());
    return status;
}

std::size_t count_members(std::string_view body) { return list_in(Document(body).root(), "members").size(); }

std::vector<std::string> read_alarms(std::string_view body) {
    std::vector<std::string> alarms;
    const Document document(body);
    for (const json::value& alarm : list_in(document.root(), "alarms")) alarms.emplace_back(text_in(alarm, "alarm"));
    return alarms;
}

std::string watch_text(std::string_view key, bool only_deletes) {
    std::string text = R"({"create_request":{)";
    append_field(text, "key", key);
    if (only_deletes) text += R"(,"filters":["NOPUT"])";
    text += "}}";
    return text;
}

WatchNews read_news(std::string_view line) {
    const Document document(line);
    const json::value* result = field(document.root(), "result");
    WatchNews news;
    if (result == nullptr) {
        news.over = true;
        return news;
    }
    news.created = flag_in(*result, "created");
    if (const json::value* header = field(*result, "header")) news.revision = number_in<Revision>(*header, "revision");
    news.over = flag_in(*result, "canceled") || field(*result, "compact_revision") != nullptr;
    for (const json::value& event : list_in(*result, "events")) {
        const json::value* changed = field(event, "kv");
        auto key_value = changed == nullptr ? std::nullopt : key_value_in(*changed);
        if (!key_value) {
            news.over = true;
            continue;
        }
        news.events.push_back(std::move(*key_value));
    }
    return news;
}

}  // namespace holdfast::stores::etcd
