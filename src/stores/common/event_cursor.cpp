#include "stores/common/event_cursor.hpp"

#include "values/hex.hpp"

#include <charconv>

namespace holdfast::stores {

EventCursor cursor_of(std::string_view form, std::initializer_list<std::string> words) {
    EventCursor cursor{std::string(form)};
    for (const std::string& word : words) cursor.text += " " + word;
    return cursor;
}

std::optional<std::vector<std::string_view>> cursor_words(const EventCursor& cursor, std::string_view form,
                                                          std::size_t count) {
    std::string_view rest = cursor.text;
    if (rest.size() > EventCursor::longest || !rest.starts_with(form)) return std::nullopt;
    rest.remove_prefix(form.size());
    std::vector<std::string_view> words;
    while (rest.starts_with(' ')) {
        rest.remove_prefix(1);
        words.push_back(rest.substr(0, rest.find(' ')));
        rest.remove_prefix(words.back().size());
    }
    if (!rest.empty() || words.size() != count) return std::nullopt;
    return words;
}

std::optional<std::int64_t> number_of_word(std::string_view word) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.begin(), word.end(), number);
    if (error != std::errc{} || end != word.end() || number < 0) return std::nullopt;
    return number;
}

std::string word_of(const LockName& name) {
    const std::string& text = name.text();
    return to_hex({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::optional<LockName> name_of_word(std::string_view word) {
    std::string text(word.size() / 2, '\0');
    if (!from_hex(word, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()})) return std::nullopt;
    auto name = LockName::parse(text);
    if (!name) return std::nullopt;
    return std::move(*name);
}

Error invalid_cursor() { return {Errc::usage, "this is no cursor of this store's events"}; }

Result<NumberedCursor> NumberedCursor::read(const EventCursor& cursor, std::string_view form, const StoreId& store_id) {
    if (cursor.text.empty()) return NumberedCursor{};
    const auto words = cursor_words(cursor, form, 3);
    const auto of = words ? StoreId::parse((*words)[0]) : std::unexpected(invalid_cursor());
    const auto number = words ? number_of_word((*words)[1]) : std::nullopt;
    if (!of || !number) return std::unexpected(invalid_cursor());
    return *of == store_id ? NumberedCursor{*number, std::string((*words)[2])} : NumberedCursor{};
}

Result<EventPage> page_without_store(const EventCursor& after, std::string_view form) {
    if (const auto cursor = NumberedCursor::read(after, form, StoreId{}); !cursor)
        return std::unexpected(cursor.error());
    return EventPage{.next = after};
}

EventCursor NumberedCursor::text(std::string_view form, const StoreId& store_id) const {
    return cursor_of(form, {store_id.text(), std::to_string(number), mark});
}

}  // namespace holdfast::stores
