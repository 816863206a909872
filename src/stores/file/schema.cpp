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
constexpr std::string_view version_line = "format 1\n";
constexpr std::string_view id_word = "store_id ";
constexpr std::size_t checksum_line = 16;  ///< `crc32c 0123abcd\n`
constexpr std::size_t longest_format = 4096;

std::string with_checksum(const std::string& text) {
    const Bytes bytes(text.begin(), text.end());
    return text + fmt::format("crc32c {:08x}\n", base::crc32c(bytes));
}

std::string format_text(const StoreId& store_id) {
    return with_checksum(fmt::format("{}{}{}{}\n", magic, version_line, id_word, store_id.text()));
}

Result<StoreId> parse_format(const std::string& text, const std::string& path) {
    const auto corrupt = [&] {
        return fail(Errc::record_corrupt,
                    path + " cannot be read: it was cut or altered; the store stays blocked until it is restored");
    };
    if (!text.starts_with(magic)) return fail(Errc::format_unsupported, path + " was not written by Holdfast");
    if (text.size() < magic.size() + checksum_line) return corrupt();
    if (with_checksum(text.substr(0, text.size() - checksum_line)) != text) return corrupt();
    const std::string_view rest = std::string_view(text).substr(magic.size());
    if (!rest.starts_with(version_line))
        return fail(Errc::format_unsupported, path + " has a format that this Holdfast does not know; use a newer one");
    const auto id = rest.substr(version_line.size());
    if (!id.starts_with(id_word)) return corrupt();
    const auto store_id = StoreId::parse(id.substr(id_word.size(), id.find('\n') - id_word.size()));
    if (!store_id || format_text(*store_id) != text) return corrupt();
    return *store_id;
}

/// Empty if the folder has no format file, and nothing else either.
Result<std::optional<StoreId>> read_format(const Folder& dir) {
    while (true) {
        const auto bytes = dir.read(format_file, longest_format);
        if (!bytes) return std::unexpected(bytes.error());
        if (*bytes) {
            const auto store_id = parse_format({(*bytes)->begin(), (*bytes)->end()}, dir.path_of(format_file));
            if (!store_id) return std::unexpected(store_id.error());
            return *store_id;
        }
        const auto entries = dir.entries();
        if (!entries) return std::unexpected(entries.error());
        // Somebody else finished creating the store between our two looks.
        if (std::ranges::find(*entries, format_file) != entries->end()) continue;
        const bool is_new =
            std::ranges::all_of(*entries, [](const std::string& e) { return e.starts_with(unfinished_format); });
        if (is_new) return std::nullopt;
        return fail(Errc::format_unsupported,
                    dir.path() + " has other content and no format file; it is not a store of ours");
    }
}

/// Written aside and then linked: the name appears complete, and only for the first.
Result<void> write_format(const Folder& dir) {
    const std::string aside = std::string(unfinished_format) + StoreId::random().text();
    const std::string text = format_text(StoreId::random());
    if (auto written = dir.write(aside, Bytes(text.begin(), text.end())); !written) return written;
    const bool linked = linkat(dir.fd(), aside.c_str(), dir.fd(), format_file.c_str(), 0) == 0;
    const int error = errno;
    // What cannot be removed here stays as a small file that everybody ignores.
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
    const auto store_id = read_format(**dir);
    if (!store_id) return std::unexpected(store_id.error());
    if (!*store_id) return std::nullopt;
    return StoreFolder{std::move(**dir), **store_id};
}

Result<StoreFolder> StoreFolder::make(const std::string& path, Sync sync) {
    auto found = find(path, sync);
    if (!found) return std::unexpected(found.error());
    if (!*found) {
        if (auto made = Folder::make_path(path, sync); !made) return std::unexpected(made.error());
        const auto dir = Folder::open(path, sync);
        if (!dir) return std::unexpected(dir.error());
        if (!*dir) return fail(Errc::store_unavailable, path + " was removed while it was made");
        // Asked again behind the open folder, which another process may have filled since.
        const auto store_id = read_format(**dir);
        if (!store_id) return std::unexpected(store_id.error());
        if (!*store_id)
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
    // The format file and the folder for locks: both, whoever made them.
    if (auto synced = store.dir.sync(); !synced) return std::unexpected(synced.error());
    return store;
}

bool StoreFolder::was_used() const {
    struct stat mark{};
    return fstatat(dir.fd(), mark_file.c_str(), &mark, AT_SYMLINK_NOFOLLOW) == 0;
}

void StoreFolder::mark_used() const {
    if (!was_used() && dir.open_guard(mark_file)) static_cast<void>(dir.sync());
}

}  // namespace holdfast::stores::file
