#include "stores/file/schema.hpp"

#include "base/crc32c.hpp"
#include "base/os_error.hpp"
#include "base/ownership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

namespace holdfast::stores::file {
namespace {

const std::string format_file = "format";
const std::string mark_file = "used";
constexpr std::string_view unfinished_format = ".format-";
constexpr std::string_view magic = "holdfast file store\n";
constexpr std::string_view version_line = "format 2\n";
/// Otherwise the same, but it has no events of kinds that older programs cannot read.
constexpr std::string_view old_version_line = "format 1\n";
constexpr std::string_view id_word = "store_id ";
constexpr std::size_t checksum_line = 16;  ///< `crc32c 0123abcd\n`
constexpr std::size_t longest_format = 4096;

std::string with_checksum(const std::string& text) {
    const Bytes bytes(text.begin(), text.end());
    return text + fmt::format("crc32c {:08x}\n", base::crc32c(bytes));
}

std::string format_text(const StoreId& store_id, std::string_view version = version_line) {
    return with_checksum(fmt::format("{}{}{}{}\n", magic, version, id_word, store_id.text()));
}

struct Format {
    StoreId store_id{};
    bool is_old = false;
};

Result<Format> parse_format(const std::string& text, const std::string& path) {
    const auto corrupt = [&] {
        return fail(Errc::record_corrupt,
                    path + " cannot be read: it was cut or altered; the store stays blocked until it is restored");
    };
    if (!text.starts_with(magic)) return fail(Errc::format_unsupported, path + " was not written by Holdfast");
    if (text.size() < magic.size() + checksum_line) return corrupt();
    if (with_checksum(text.substr(0, text.size() - checksum_line)) != text) return corrupt();
    const std::string_view rest = std::string_view(text).substr(magic.size());
    const bool is_old = rest.starts_with(old_version_line);
    if (!is_old && !rest.starts_with(version_line))
        return fail(Errc::format_unsupported, path + " has a format that this Holdfast does not know; use a newer one");
    const auto id = rest.substr(version_line.size());
    if (!id.starts_with(id_word)) return corrupt();
    const auto store_id = StoreId::parse(id.substr(id_word.size(), id.find('\n') - id_word.size()));
    if (!store_id || format_text(*store_id, is_old ? old_version_line : version_line) != text) return corrupt();
    return Format{*store_id, is_old};
}

/// Empty if the folder has no format file, and nothing else either.
Result<std::optional<Format>> read_format(const Folder& dir) {
    while (true) {
        const auto bytes = dir.read(format_file, longest_format);
        if (!bytes) return std::unexpected(bytes.error());
        if (*bytes) {
            const auto format = parse_format({(*bytes)->begin(), (*bytes)->end()}, dir.path_of(format_file));
            if (!format) return std::unexpected(format.error());
            return *format;
        }
        const auto entries = dir.entries();
        if (!entries) return std::unexpected(entries.error());
        // Another process finished creating the store between our two looks.
        if (std::ranges::find(*entries, format_file) != entries->end()) continue;
        const bool is_new =
            std::ranges::all_of(*entries, [](const std::string& e) { return e.starts_with(unfinished_format); });
        if (is_new) return std::nullopt;
        return fail(Errc::format_unsupported,
                    dir.path() + " has other content and no format file; it is not a store of ours");
    }
}

/// A file with a name of its own and this content, to be linked to the right name afterwards.
Result<std::string> write_aside(const Folder& dir, const StoreId& store_id) {
    std::string aside = std::string(unfinished_format) + StoreId::random().text();
    const std::string text = format_text(store_id);
    if (auto written = dir.write(aside, Bytes(text.begin(), text.end())); !written)
        return std::unexpected(written.error());
    return aside;
}

/// Written under another name and then linked: the file appears complete, and only the first writer succeeds.
Result<void> write_format(const Folder& dir) {
    const auto written = write_aside(dir, StoreId::random());
    if (!written) return std::unexpected(written.error());
    const std::string& aside = *written;
    const bool linked = linkat(dir.fd(), aside.c_str(), dir.fd(), format_file.c_str(), 0) == 0;
    const int error = errno;
    // If it cannot be removed, it stays as a small file that every version ignores.
    unlinkat(dir.fd(), aside.c_str(), 0);
    if (!linked && error != EEXIST) return std::unexpected(base::os_error(error, "make " + dir.path_of(format_file)));
    return {};
}

}  // namespace

Result<std::optional<StoreFolder>> StoreFolder::find(const std::string& path, Sync sync) {
    // Before anything is made there.
    const std::string above = std::filesystem::path(path).parent_path().string();
    if (auto safe = base::expect_safe_place(above); !safe) return std::unexpected(safe.error());
    auto dir = Folder::open(path, sync);
    if (!dir) return std::unexpected(dir.error());
    if (!*dir) return std::nullopt;
    const auto format = read_format(**dir);
    if (!format) return std::unexpected(format.error());
    if (!*format) return std::nullopt;
    return StoreFolder{std::move(**dir), (*format)->store_id, (*format)->is_old};
}

Result<StoreFolder> StoreFolder::make(const std::string& path, Sync sync) {
    auto found = find(path, sync);
    if (!found) return std::unexpected(found.error());
    if (!*found) {
        if (auto made = Folder::make_path(path, sync); !made) return std::unexpected(made.error());
        const auto dir = Folder::open(path, sync);
        if (!dir) return std::unexpected(dir.error());
        if (!*dir) return fail(Errc::store_unavailable, path + " was removed while it was made");
        // Asked again after the folder was opened, because another process may have filled it since.
        const auto format = read_format(**dir);
        if (!format) return std::unexpected(format.error());
        if (!*format)
            if (auto written = write_format(**dir); !written) return std::unexpected(written.error());
        found = find(path, sync);
        if (!found) return std::unexpected(found.error());
        if (!*found) return fail(Errc::store_unavailable, path + " was removed while it was made");
    }
    StoreFolder store = std::move(**found);
    const auto locks = store.locks();
    if (!locks) return std::unexpected(locks.error());
    if (*locks) return store;
    if (auto made = store.dir.made_child("locks"); !made) return std::unexpected(made.error());
    // Syncs the names of both the format file and the folder for locks, also if another process made them.
    if (auto synced = store.dir.sync(); !synced) return std::unexpected(synced.error());
    return store;
}

Result<void> StoreFolder::upgrade() {
    if (!is_old) return {};
    const auto aside = write_aside(dir, store_id);
    if (!aside) return std::unexpected(aside.error());
    // Processes that do this at the same time give the file the same content.
    if (renameat(dir.fd(), aside->c_str(), dir.fd(), format_file.c_str()) != 0) {
        const int error = errno;
        unlinkat(dir.fd(), aside->c_str(), 0);
        return std::unexpected(base::os_error(error, "upgrade " + dir.path_of(format_file)));
    }
    if (auto synced = dir.sync(); !synced) return synced;
    is_old = false;
    return {};
}

bool StoreFolder::was_used() const {
    struct stat mark{};
    return fstatat(dir.fd(), mark_file.c_str(), &mark, AT_SYMLINK_NOFOLLOW) == 0;
}

void StoreFolder::mark_used() const {
    if (!was_used() && dir.open_guard(mark_file)) static_cast<void>(dir.sync());
}

}  // namespace holdfast::stores::file
