#include "json/fields.hpp"

#include "values/hex.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::json {
namespace {

/// Null if it is not there.
const Member* member_of(const Node::Object* object, std::string_view key) {
    if (object == nullptr) return nullptr;
    const auto found = std::ranges::find(*object, key, &Member::key);
    return found == object->end() ? nullptr : &*found;
}

}  // namespace

Fields::Fields(const Node& node, std::string where) : object_(node.object()), where_(std::move(where)) {
    if (object_ != nullptr)
        read_.resize(object_->size());
    else
        error_ = Error{Errc::usage, (where_.empty() ? "the document" : where_) + " is not an object"};
}

std::string Fields::path_of(std::string_view key) const {
    return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
}

bool Fields::has(std::string_view key) const {
    const Member* member = member_of(object_, key);
    return member != nullptr && !member->node.is_null();
}

void Fields::refuse(std::string_view key, std::string_view why) {
    if (!error_) error_ = Error{Errc::usage, fmt::format("{} {}", path_of(key), why)};
}

void Fields::refuse(std::string_view key, const Error& why) {
    if (!error_) error_ = Error{why.code, fmt::format("{}: {}", path_of(key), why.message)};
}

void Fields::adopt(const Fields& inner) {
    if (!error_) error_ = inner.error_;
}

void Fields::refuse_others() {
    const auto other = std::ranges::find(read_, false);
    if (other == read_.end()) return;
    const Member& member = (*object_)[static_cast<std::size_t>(other - read_.begin())];
    refuse(printable(end_of(member.key, 80)), "is not a field of this request");
}

const Node* Fields::find_if(std::string_view key) {
    const Member* member = member_of(object_, key);
    if (member == nullptr) return nullptr;
    read_[static_cast<std::size_t>(member - object_->data())] = true;
    return member->node.is_null() ? nullptr : &member->node;
}

std::optional<std::string_view> Fields::text_if(std::string_view key) {
    const Node* node = find_if(key);
    if (node == nullptr) return std::nullopt;
    if (const auto* text = std::get_if<std::string>(&node->value)) return *text;
    refuse(key, "is not a text");
    return std::nullopt;
}

std::string Fields::text(std::string_view key) {
    const auto text = text_if(key);
    if (!text) refuse(key, "is missing");
    return std::string(text.value_or(""));
}

std::string Fields::text_or_empty(std::string_view key) { return std::string(text_if(key).value_or("")); }

std::optional<std::uint64_t> Fields::number_if(std::string_view key) {
    const Node* node = find_if(key);
    if (node == nullptr) return std::nullopt;
    const auto* number = std::get_if<std::int64_t>(&node->value);
    if (number != nullptr && *number >= 0 && *number < number_limit) return static_cast<std::uint64_t>(*number);
    refuse(key, "is not a whole number from 0 to 2^53-1");
    return std::nullopt;
}

std::uint64_t Fields::number(std::string_view key) {
    const auto number = number_if(key);
    if (!number) refuse(key, "is missing");
    return number.value_or(0);
}

std::optional<std::chrono::milliseconds> Fields::duration_if(std::string_view key) {
    const auto number = number_if(key);
    if (!number) return std::nullopt;
    return std::chrono::milliseconds{static_cast<std::int64_t>(*number)};
}

std::chrono::milliseconds Fields::duration(std::string_view key) {
    return std::chrono::milliseconds{static_cast<std::int64_t>(number(key))};
}

std::optional<Ttl> Fields::ttl_if(std::string_view key) {
    const auto time = duration_if(key);
    if (!time) return std::nullopt;
    const auto ttl = Ttl::of(*time);
    if (ttl) return *ttl;
    refuse(key, ttl.error());
    return std::nullopt;
}

FencingToken Fields::token(std::string_view key) { return FencingToken{number(key)}; }

bool Fields::is_true(std::string_view key) {
    const Node* node = find_if(key);
    if (node == nullptr) return false;
    if (const bool* yes = std::get_if<bool>(&node->value)) return *yes;
    refuse(key, "is neither true nor false");
    return false;
}

std::optional<Instant> Fields::time_if(std::string_view key) {
    const auto text = text_if(key);
    if (!text) return std::nullopt;
    const auto time = parse_time(*text);
    if (!time) refuse(key, "is not a time such as 2026-01-31T12:00:00.000Z");
    return time;
}

Instant Fields::time(std::string_view key) {
    const auto time = time_if(key);
    if (!time) refuse(key, "is missing");
    return time.value_or(Instant{});
}

Digest Fields::digest(std::string_view key) {
    Digest digest{};
    if (!from_hex(text(key), digest)) refuse(key, "is not a hash of 64 hexadecimal digits");
    return digest;
}

std::map<std::string, std::string> Fields::texts(std::string_view key) {
    std::map<std::string, std::string> all;
    const Node* node = find_if(key);
    if (node == nullptr) return all;
    const auto* object = node->object();
    if (object == nullptr) {
        refuse(key, "is not an object");
        return all;
    }
    for (const auto& [name, value] : *object) {
        const auto* text = std::get_if<std::string>(&value.value);
        if (text == nullptr) refuse(fmt::format("{}.{}", key, printable(end_of(name, 80))), "is not a text");
        all.emplace(name, text == nullptr ? "" : *text);
    }
    return all;
}

std::vector<LockName> Fields::names(std::string_view key) {
    std::vector<LockName> names;
    const Node* node = find_if(key);
    if (node == nullptr) return names;
    const auto* items = node->array();
    if (items == nullptr) {
        refuse(key, "is not a list");
        return names;
    }
    for (const Node& item : *items) {
        const auto* text = std::get_if<std::string>(&item.value);
        auto name = LockName::parse(text == nullptr ? "" : *text);
        if (!name) {
            refuse(key, name.error());
            return names;
        }
        names.push_back(std::move(*name));
    }
    return names;
}

const Node* Fields::object_if(std::string_view key) {
    const Node* node = find_if(key);
    if (node == nullptr || node->object() != nullptr) return node;
    refuse(key, "is not an object");
    return nullptr;
}

const Node::Array& Fields::array(std::string_view key) {
    static const Node::Array none{};
    const Node* node = find_if(key);
    if (node != nullptr && node->array() != nullptr) return *node->array();
    refuse(key, node == nullptr ? "is missing" : "is not a list");
    return none;
}

}  // namespace holdfast::json
