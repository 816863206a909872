#include "guards/worktree/exclusions.hpp"

#include "base/fd.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/repository.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <ranges>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

constexpr std::string_view cache_signature = "Signature: 8a477f597d28d172789f06886806bc55";
/// Matching backtracks: patterns with more stars than anybody needs could take for ever.
constexpr std::size_t longest_pattern = 1024;
constexpr std::ptrdiff_t most_stars = 8;

/// `[a-z]`, `[!a-z]`: how many bytes of the pattern it takes, and whether `c` fits. 0: it has no end.
std::pair<std::size_t, bool> in_class(std::string_view pattern, char c) {
    std::size_t at = 1;
    const bool inverted = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
    if (inverted) ++at;
    const auto code = [](char letter) { return static_cast<unsigned char>(letter); };
    bool fits = false;
    for (bool first = true; at < pattern.size() && (first || pattern[at] != ']'); first = false) {
        if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
        const char low = pattern[at++];
        char high = low;
        if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
            high = pattern[at + 1];
            at += 2;
        }
        fits = fits || (code(low) <= code(c) && code(c) <= code(high));
    }
    if (at >= pattern.size()) return {0, false};
    return {at + 1, fits != inverted && c != '/'};
}

std::string_view trimmed(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
    return line;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view path) {
    while (!pattern.empty()) {
        if (pattern.starts_with("**/")) {
            pattern.remove_prefix(3);
            for (;;) {
                if (matches(pattern, path)) return true;
                const auto slash = path.find('/');
                if (slash == std::string_view::npos) return false;
                path.remove_prefix(slash + 1);
            }
        }
        if (pattern == "**") return !path.empty();
        if (pattern.front() == '*') {
            const auto rest = pattern.substr(std::min(pattern.find_first_not_of('*'), pattern.size()));
            for (std::size_t taken = 0; taken <= path.size(); ++taken) {
                if (matches(rest, path.substr(taken))) return true;
                if (taken < path.size() && path[taken] == '/') return false;
            }
            return false;
        }
        if (path.empty()) return false;
        std::size_t used = 1;
        bool fits = false;
        if (pattern.front() == '?') {
            fits = path.front() != '/';
        } else if (pattern.front() == '[') {
            std::tie(used, fits) = in_class(pattern, path.front());
        } else {
            if (pattern.front() == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
            fits = pattern.front() == path.front();
        }
        if (!fits || used == 0) return false;
        pattern.remove_prefix(used);
        path.remove_prefix(1);
    }
    return path.empty();
}

Result<Exclusions> Exclusions::parse(std::string_view text) {
    Exclusions exclusions;
    std::size_t number = 0;
    for (const auto each : std::views::split(text, '\n')) {
        ++number;
        std::string_view line = trimmed({each.begin(), each.end()});
        if (line.empty() || line.front() == '#') continue;
        Pattern pattern;
        if (line.front() == '!') {
            pattern.takes_back = true;
            line.remove_prefix(1);
        }
        if (line.ends_with('/')) {
            pattern.folders_only = true;
            line.remove_suffix(1);
        }
        pattern.is_tied = line.find('/') != std::string_view::npos;
        if (line.starts_with('/')) line.remove_prefix(1);
        pattern.text = line;
        const bool has_open_class = [&] {
            for (std::size_t i = 0; i < line.size(); ++i) {
                if (line[i] == '\\')
                    ++i;
                else if (line[i] == '[') {
                    const auto used = in_class(line.substr(i), 'x').first;
                    if (used == 0) return true;
                    i += used - 1;
                }
            }
            return false;
        }();
        if (line.empty() || line.size() > longest_pattern || std::ranges::count(line, '*') > most_stars ||
            has_open_class)
            return fail(Errc::config, fmt::format("{} line {}: this pattern cannot be used", ignore_file, number));
        exclusions.patterns_.push_back(std::move(pattern));
    }
    return exclusions;
}

Result<Exclusions> Exclusions::of(int root) {
    const auto text = read_text(root, ignore_file);
    if (!text) return std::unexpected(text.error());
    return parse(*text ? **text : std::string());
}

bool Exclusions::leaves_out(std::string_view path, Thing thing) const {
    if (is_restore_place(path)) return true;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    for (const Pattern& pattern : std::views::reverse(patterns_)) {
        if (pattern.folders_only && thing != Thing::folder) continue;
        if (matches(pattern.text, pattern.is_tied ? path : name)) return !pattern.takes_back;
    }
    return false;
}

bool is_cache(int folder) {
    const base::Fd tag(openat(folder, cache_tag, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    std::array<char, cache_signature.size()> found{};
    return tag && read(tag.get(), found.data(), found.size()) == ssize_t{found.size()} &&
           std::string_view(found.data(), found.size()) == cache_signature;
}

}  // namespace holdfast::guards::worktree
