#include "guards/sql/migrate/folder.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"
#include "values/hex.hpp"
#include "values/sha256.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::guards::migrate {
namespace {

namespace fs = std::filesystem;

/// A BIGINT, with room to spare.
constexpr std::size_t longest_number = 18;
constexpr std::string_view repeatable_prefix = "R__";
constexpr std::string_view down_suffix = ".down.sql";
constexpr std::string_view ending = ".sql";

std::unexpected<Error> refuse(std::string message, std::string hint = {}) {
    Error error{Errc::migration_failed, std::move(message)};
    error.hint = std::move(hint);
    return std::unexpected(std::move(error));
}

std::unexpected<Error> unreadable_name(const std::string& path, std::string_view why) {
    return refuse(fmt::format("{}: {}", printable(path), why),
                  "a migration is called 0007_create_users.sql, its way back 0007_create_users.down.sql, and what runs "
                  "again when it changed R__views.sql");
}

std::string with_unix_line_ends(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\r') {
            result += text[i];
            continue;
        }
        result += '\n';
        if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    }
    return result;
}

std::string hex_of(std::string_view text) {
    return to_hex(sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
}

/// The line that ends in a carriage return alone. Some databases take it for the end of a comment, and others do not.
std::optional<std::size_t> line_with_lone_return(std::string_view text) {
    std::size_t line = 1;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n') ++line;
        if (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')) return line;
    }
    return std::nullopt;
}

/// `.sql` in any case: what somebody meant to be a migration.
bool is_sql(std::string_view file) {
    if (file.size() < ending.size() || file.starts_with(".")) return false;
    return std::ranges::equal(file.substr(file.size() - ending.size()), ending, {}, [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    });
}

/// All of it, or an error: half a migration must not run.
Result<std::string> text_of(const std::string& path) {
    const auto unreadable = [&] { return refuse(base::os_error(errno, "read " + printable(path)).message); };
    // A pipe would be waited for.
    const base::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat facts{};
    if (!file || fstat(file.get(), &facts) != 0) return unreadable();
    if (!S_ISREG(facts.st_mode)) return refuse(printable(path) + ": this is no regular file");
    std::string text;
    std::array<char, 65536> part{};
    for (;;) {
        const ssize_t got = read(file.get(), part.data(), part.size());
        if (got == 0) return text;
        if (got < 0 && errno != EINTR) return unreadable();
        if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
    }
}

/// Fills in what the text alone says.
Result<MigrationFile> with_text(MigrationFile file, const std::string& text) {
    if (text.find('\0') != std::string::npos || !is_utf8(text))
        return refuse(printable(file.path) + ": not text in UTF-8");
    if (const auto line = line_with_lone_return(text))
        return refuse(
            fmt::format("{}:{}: a carriage return stands alone; lines end in LF or CRLF", printable(file.path), *line),
            "inside a text of SQL it is written as E'\\r', CHAR(13) or char(13)");
    file.text = text;
    file.checksum = checksum_of(text);
    for (const std::string& directive : directives_of(text)) {
        if (directive == "no-transaction")
            file.in_transaction = false;
        else if (!directive.starts_with("accept "))
            return refuse(
                fmt::format("{}: \"-- holdfast: {}\" means nothing here", printable(file.path), printable(directive)),
                "a file may begin with \"-- holdfast: no-transaction\" or \"-- holdfast: accept RULE\"");
    }
    return file;
}

struct Name {
    std::string_view digits{};
    std::string_view rest{};
};

/// `0007` and `create_users`.
std::optional<Name> split_name(std::string_view stem) {
    const auto digits = std::min(stem.find_first_not_of("0123456789"), stem.size());
    if (digits == 0 || digits > longest_number || stem.size() < digits + 2 || stem[digits] != '_') return std::nullopt;
    return Name{stem.substr(0, digits), stem.substr(digits + 1)};
}

class Reader {
public:
    explicit Reader(std::string path) { folder_.path = std::move(path); }

    Result<void> add(const std::string& file, const std::string& text) {
        const std::string path = folder_.path + "/" + file;
        MigrationFile found;
        found.file = file;
        found.path = path;
        if (!file.ends_with(ending)) return unreadable_name(path, "the ending of a migration is .sql in small letters");
        if (file.starts_with(repeatable_prefix)) return add_repeatable(std::move(found), text);
        const bool is_down = file.ends_with(down_suffix);
        const std::string_view stem =
            std::string_view(file).substr(0, file.size() - (is_down ? down_suffix : ending).size());
        const auto name = split_name(stem);
        if (!name) return unreadable_name(path, "this is no name of a migration");
        found.number = std::stoull(std::string(name->digits));
        found.version = std::to_string(found.number);
        found.name = name->rest;
        auto read = with_text(std::move(found), text);
        if (!read) return std::unexpected(read.error());
        return is_down ? add_down(*std::move(read)) : add_versioned(*std::move(read));
    }

    Result<Folder> finish() {
        std::ranges::sort(folder_.versioned, {}, &MigrationFile::number);
        for (const auto& [version, down] : folder_.down)
            if (std::ranges::find(folder_.versioned, version, &MigrationFile::version) == folder_.versioned.end())
                return refuse(fmt::format("{}: there is no migration {} that this leads back from",
                                          printable(down.path), version));
        return std::move(folder_);
    }

    void set_sum(std::string text) { folder_.sum = std::move(text); }

private:
    Result<void> add_repeatable(MigrationFile found, const std::string& text) {
        found.name =
            found.file.substr(repeatable_prefix.size(), found.file.size() - repeatable_prefix.size() - ending.size());
        if (found.name.empty() || found.file.ends_with(down_suffix))
            return unreadable_name(found.path, "this is no name of a repeatable migration");
        found.version = std::string(repeatable_prefix) + found.name;
        auto read = with_text(std::move(found), text);
        if (!read) return std::unexpected(read.error());
        folder_.repeatable.push_back(*std::move(read));
        return {};
    }

    Result<void> add_versioned(MigrationFile found) {
        const auto same = std::ranges::find(folder_.versioned, found.number, &MigrationFile::number);
        if (same != folder_.versioned.end()) return duplicate(*same, found);
        folder_.versioned.push_back(std::move(found));
        return {};
    }

    Result<void> add_down(MigrationFile found) {
        const auto [same, added] = folder_.down.try_emplace(found.version, found);
        if (!added) return duplicate(same->second, found);
        return {};
    }

    static std::unexpected<Error> duplicate(const MigrationFile& one, const MigrationFile& other) {
        return refuse(fmt::format("{} and {} have the same number", printable(one.path), printable(other.file)),
                      "give one of them a new number; when both were merged, the one that ran nowhere yet");
    }

    Folder folder_{};
};

/// The lines of holdfast.sum below the first.
std::string sum_lines(const Folder& folder) {
    std::map<std::string, std::string> sums;
    for (const MigrationFile& file : folder.versioned) sums[file.file] = file.checksum;
    for (const MigrationFile& file : folder.repeatable) sums[file.file] = file.checksum;
    for (const auto& [version, file] : folder.down) sums[file.file] = file.checksum;
    std::string lines;
    for (const auto& [file, sum] : sums) lines += fmt::format("{}  {}\n", sum, file);
    return lines;
}

std::map<std::string, std::string> parse_sum(std::string_view text) {
    std::map<std::string, std::string> sums;
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        if (const auto gap = line.find("  "); gap != std::string_view::npos)
            sums[std::string(line.substr(gap + 2))] = std::string(line.substr(0, gap));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return sums;
}

}  // namespace

std::string checksum_of(std::string_view text) { return hex_of(with_unix_line_ends(text)); }

std::vector<std::string> directives_of(std::string_view text) {
    constexpr std::string_view mark = "-- holdfast:";
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    std::vector<std::string> found;
    while (!text.empty()) {
        const auto end = std::min(text.find_first_of("\r\n"), text.size());
        std::string_view line = text.substr(0, end);
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        if (!line.empty() && !line.starts_with("--")) break;
        if (line.starts_with(mark)) {
            line.remove_prefix(mark.size());
            line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
            line = line.substr(0, line.find_last_not_of(" \t") + 1);
            found.emplace_back(line);
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return found;
}

Result<Folder> folder_of(const std::string& path, const std::map<std::string, std::string>& files) {
    Reader reader(path);
    for (const auto& [file, text] : files) {
        if (file == sum_file) reader.set_sum(with_unix_line_ends(text));
        if (!is_sql(file)) continue;
        if (auto added = reader.add(file, text); !added) return std::unexpected(added.error());
    }
    return reader.finish();
}

Result<Folder> read_folder(const std::string& path) {
    std::error_code failed;
    std::map<std::string, std::string> files;
    for (fs::directory_iterator each(path, failed), end; !failed && each != end; each.increment(failed)) {
        const std::string name = each->path().filename().string();
        if (name != sum_file && !is_sql(name)) continue;
        auto text = text_of(each->path().string());
        if (!text) return std::unexpected(text.error());
        files[name] = *std::move(text);
    }
    if (failed == std::errc::no_such_file_or_directory || failed == std::errc::not_a_directory)
        return fail(Errc::usage, fmt::format("there is no folder {} with migrations; --dir names another, and "
                                             "\"holdfast migrate new NAME\" makes the first file",
                                             printable(path)));
    if (failed) return std::unexpected(base::os_error(failed.value(), "read the folder " + printable(path)));
    return folder_of(path, files);
}

std::string sum_of(const Folder& folder) {
    const std::string lines = sum_lines(folder);
    return fmt::format("holdfast {}\n{}", hex_of(lines), lines);
}

Result<void> check_sum(const Folder& folder) {
    if (!folder.sum || *folder.sum == sum_of(folder)) return {};
    const auto listed = parse_sum(*folder.sum);
    const auto found = parse_sum(sum_lines(folder));
    std::string what = "its first line does not fit the others, as after a merge";
    for (const auto& [file, sum] : found) {
        const auto entry = listed.find(file);
        if (entry == listed.end()) what = file + " is not listed";
        if (entry != listed.end() && entry->second != sum) what = file + " has another text";
    }
    for (const auto& [file, sum] : listed)
        if (!found.contains(file)) what = file + " is listed and is not there";
    Error error{Errc::migration_checksum, fmt::format("{}/{}: {}", printable(folder.path), sum_file, printable(what))};
    error.hint = "if the files are as they should be, write it anew with \"holdfast migrate lint --write-sum\"";
    return std::unexpected(std::move(error));
}

}  // namespace holdfast::guards::migrate
