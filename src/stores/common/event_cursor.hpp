#pragma once

#include "holdfast/store.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The text of cursors: words with a space between them, of which the first is the form. A store reads only cursors of
/// its own form, so that one of another kind of store is refused instead of misread.
namespace holdfast::stores {

[[nodiscard]] EventCursor cursor_of(std::string_view form, std::initializer_list<std::string> words);

/// The words after the form, `count` of them. Empty for a cursor of another form.
[[nodiscard]] std::optional<std::vector<std::string_view>> cursor_words(const EventCursor& cursor,
                                                                        std::string_view form, std::size_t count);
[[nodiscard]] std::optional<std::int64_t> number_of_word(std::string_view word);

/// A name as a word, and back. Hexadecimal, since a name can have spaces.
[[nodiscard]] std::string word_of(const LockName& name);
[[nodiscard]] std::optional<LockName> name_of_word(std::string_view word);

/// The error for a cursor that cannot be read.
[[nodiscard]] Error invalid_cursor();

/// The position of a reader in a store whose events have one order: after the event with this number, in the store that
/// the cursor names. In any other store (it was emptied and created again) all events are still to be read.
struct NumberedCursor {
    std::int64_t number = 0;
    std::string mark{};  ///< A mark of that event, by which a store detects that it was restored from a copy.

    /// For the store `store_id`. Refused with `usage` if the text is no such cursor.
    [[nodiscard]] static Result<NumberedCursor> read(const EventCursor& cursor, std::string_view form,
                                                     const StoreId& store_id);
    [[nodiscard]] EventCursor text(std::string_view form, const StoreId& store_id) const;
};

/// The answer of a store that nobody has created yet.
[[nodiscard]] Result<EventPage> page_without_store(const EventCursor& after, std::string_view form);

}  // namespace holdfast::stores
