#pragma once

#include "holdfast/error.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::guards::migrate {

/// One file of the folder.
struct MigrationFile {
    std::string version{};     ///< Its number without leading zeros; `R__name` for a repeatable one.
    std::uint64_t number = 0;  ///< 0 for a repeatable one.
    std::string name{};        ///< The part after the number, without the suffix.
    std::string file{};        ///< Its name in the folder.
    std::string path{};        ///< For people and for messages.
    std::string text{};
    std::string checksum{};      ///< SHA-256 of the text, with line ends as on Unix.
    bool in_transaction = true;  ///< False with `-- holdfast: no-transaction` in its first lines.
};

/// The files of a folder, in the order in which they run.
struct Folder {
    std::string path{};
    std::vector<MigrationFile> versioned{};
    std::vector<MigrationFile> repeatable{};                   ///< By name; they run last.
    std::map<std::string, MigrationFile, std::less<>> down{};  ///< By version.
    std::optional<std::string> sum{};                          ///< What holdfast.sum says, if there is one.
};

inline constexpr std::string_view sum_file = "holdfast.sum";

/// Reads `<digits>_<name>.sql`, `<digits>_<name>.down.sql` and `R__<name>.sql`. Two files with one number, and a name
/// that ends in `.sql` and is none of these, are errors; other files are not looked at.
[[nodiscard]] Result<Folder> read_folder(const std::string& path);

/// The same from names and texts.
[[nodiscard]] Result<Folder> folder_of(const std::string& path, const std::map<std::string, std::string>& files);

/// SHA-256 as hexadecimal digits, with each CRLF and CR taken for LF.
[[nodiscard]] std::string checksum_of(std::string_view text);

/// The content of holdfast.sum for this folder. Its first line depends on all others, so two branches that both add a
/// file conflict in it.
[[nodiscard]] std::string sum_of(const Folder& folder);

/// Whether holdfast.sum, where there is one, lists exactly these files with these texts.
[[nodiscard]] Result<void> check_sum(const Folder& folder);

/// The words of `-- holdfast: …` lines at the top of a script.
[[nodiscard]] std::vector<std::string> directives_of(std::string_view text);

}  // namespace holdfast::guards::migrate
