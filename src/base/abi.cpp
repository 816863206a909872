#include "base/abi.hpp"

#include <fmt/format.h>

#include <span>

namespace holdfast::base {
namespace {

std::string_view text_in(std::span<const char> field) {
    const std::string_view all(field.data(), field.size());
    return all.substr(0, all.find('\0'));
}

std::string_view name_of_commit(std::span<const char> field) {
    const std::string_view commit = text_in(field);
    return commit.empty() ? "sources without history" : commit.substr(0, 12);
}

std::string_view mode_of(const AbiTag& tag) { return tag.has_debug_containers != 0 ? "with" : "without"; }

}  // namespace

std::optional<std::string> difference(const AbiTag& ours, const AbiTag& theirs) {
    if (ours == theirs) return std::nullopt;
    if (ours.version != theirs.version)
        return fmt::format("it belongs to holdfast {}, and the program has holdfast {}", text_in(theirs.version),
                           text_in(ours.version));
    if (ours.has_debug_containers != theirs.has_debug_containers)
        return fmt::format("it was built {} _GLIBCXX_DEBUG, and the program's holdfast {}", mode_of(theirs),
                           mode_of(ours));
    if (ours.has_new_strings != theirs.has_new_strings)
        return fmt::format("it was built with _GLIBCXX_USE_CXX11_ABI={}, and the program's holdfast with {}",
                           theirs.has_new_strings, ours.has_new_strings);
    if (ours.commit != theirs.commit)
        return fmt::format("it was built from {}, and the program's holdfast from {}", name_of_commit(theirs.commit),
                           name_of_commit(ours.commit));
    return "it was built by another compiler, or with options that change the layout of types";
}

}  // namespace holdfast::base
