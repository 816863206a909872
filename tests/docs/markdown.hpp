#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Reads the documentation: its fenced code blocks and its links.
namespace holdfast::docs {

/// One fenced block. ```` ```sh no-run: needs the network ```` has the info `sh no-run: needs the network`.
struct Block {
    std::size_t line = 0;  ///< Of the opening fence, from 1.
    std::string info{};
    std::vector<std::string> lines{};
};

/// All fenced blocks of a page. Empty if a fence is never closed: the rest of the page would be lost.
[[nodiscard]] std::optional<std::vector<Block>> blocks_of(std::string_view page);

/// What the test does with a block.
enum class Marking {
    run_script,   ///< `sh`: must end with status 0 under `bash -e`.
    run_session,  ///< `console`: commands after `$ `, and what they print.
    not_run,      ///< `sh no-run: REASON`.
    quoted_code,  ///< `cpp from PATH`: a part of a file that is built.
    only_shown,   ///< `text`, `json`, `toml`…: nothing to execute.
    unknown,      ///< Anything else, `bash` and a bare fence included: the test fails.
};
[[nodiscard]] Marking marking_of(std::string_view info);

/// What follows `no-run:` or `from`.
[[nodiscard]] std::string argument_of(std::string_view info);

/// Targets of `[text](target)` outside code, without `#anchor`; web addresses and bare anchors are left out.
[[nodiscard]] std::vector<std::string> links_of(std::string_view page);

/// Whether `lines` stand in `file` in one piece. Common indentation is left out of the comparison.
[[nodiscard]] bool is_part_of(const std::vector<std::string>& lines, std::string_view file);

[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);

}  // namespace holdfast::docs
