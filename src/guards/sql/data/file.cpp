#include "guards/sql/data/file.hpp"

#include "base/os_error.hpp"
#include "guards/sql/data/csv.hpp"
#include "guards/sql/data/yaml.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <istream>
#include <linux/openat2.h>
#include <memory>
#include <streambuf>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::guards::data {
namespace {

constexpr std::size_t piece_size = std::size_t{256} * 1024;
/// The parser takes about a second for 10 MB.
constexpr off_t largest_yaml = off_t{64} * 1024 * 1024;
constexpr std::string_view csv_suffix = ".csv";
constexpr std::string_view yaml_suffix = ".yaml";

std::string in_small_letters(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return text;
}

/// How many bytes at the end are the beginning of a character.
std::size_t cut_character(std::string_view text) {
    for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if ((byte & 0xc0U) == 0x80U) continue;
        const std::size_t length = byte >= 0xf0U ? 4 : byte >= 0xe0U ? 3 : byte >= 0xc0U ? 2 : 1;
        return length > back ? back : 0;
    }
    return 0;
}

/// A file in pieces of whole characters.
class TextFile {
public:
    TextFile(const base::Fd& fd, std::string_view path, Sha256& digest)
        : fd_(&fd), path_(path), digest_(&digest), buffer_(piece_size + 4, '\0') {}

    /// Empty at the end of the file.
    [[nodiscard]] Result<std::string_view> next() {
        std::copy_n(buffer_.data() + piece_, kept_, buffer_.data());
        ssize_t got = 0;
        do got = ::read(fd_->get(), buffer_.data() + kept_, piece_size);
        while (got < 0 && errno == EINTR);
        if (got < 0) return std::unexpected(base::os_error(errno, "read " + printable(path_)));
        const auto fresh = std::string_view(buffer_).substr(kept_, static_cast<std::size_t>(got));
        digest_->update({reinterpret_cast<const std::uint8_t*>(fresh.data()), fresh.size()});
        std::string_view text = std::string_view(buffer_).substr(0, kept_ + fresh.size());
        kept_ = got == 0 ? 0 : cut_character(text);
        text.remove_suffix(kept_);
        piece_ = text.size();
        if (auto good = check(text); !good) return std::unexpected(good.error());
        line_ += static_cast<std::size_t>(std::ranges::count(text, '\n'));
        return text;
    }

private:
    [[nodiscard]] Result<void> check(std::string_view text) const {
        const bool has_nul = std::memchr(text.data(), '\0', text.size()) != nullptr;
        if (!has_nul && is_utf8(text)) return {};
        for (std::size_t line = line_; !text.empty(); ++line) {
            const std::string_view one = text.substr(0, text.find('\n'));
            if (one.find('\0') != std::string_view::npos) return refuse(path_, line, "a NUL character");
            if (!is_utf8(one)) return refuse(path_, line, "the text is not UTF-8");
            text.remove_prefix(std::min(one.size() + 1, text.size()));
        }
        return refuse(path_, line_, "the text is not UTF-8");
    }

    const base::Fd* fd_;
    std::string_view path_;
    Sha256* digest_;
    std::string buffer_;
    std::size_t piece_ = 0;  ///< How long the last piece was.
    std::size_t kept_ = 0;   ///< Bytes behind it.
    std::size_t line_ = 1;
};

/// The same for a parser that wants a stream. What goes wrong ends the stream, and is kept.
class TextBuffer final : public std::streambuf {
public:
    explicit TextBuffer(TextFile& file) : file_(&file) {}
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    /// The parser may stop before the end, and the digest is that of all bytes.
    [[nodiscard]] Result<void> finish() {
        while (!error_ && underflow() != traits_type::eof()) {
        }
        if (error_) return std::unexpected(*error_);
        return {};
    }

private:
    int_type underflow() override {
        if (error_) return traits_type::eof();
        auto piece = file_->next();
        if (!piece) error_ = piece.error();
        if (!piece || piece->empty()) return traits_type::eof();
        char* const begin = const_cast<char*>(piece->data());
        setg(begin, begin, begin + piece->size());
        return traits_type::to_int_type(*begin);
    }

    TextFile* file_;
    std::optional<Error> error_{};
};

Result<void> read_as_csv(const SourceFile& file, TextFile& text, RowSink& sink) {
    CsvReader reader(file.path, sink);
    while (true) {
        const auto piece = text.next();
        if (!piece) return std::unexpected(piece.error());
        if (piece->empty()) return reader.finish();
        if (auto fed = reader.feed(*piece); !fed) return fed;
    }
}

Result<void> read_as_yaml(const SourceFile& file, TextFile& text, RowSink& sink) {
    TextBuffer buffer(text);
    std::istream in(&buffer);
    auto parsed = read_yaml(file.path, in, sink);
    // What the parser makes of half a file says nothing.
    if (buffer.error()) return std::unexpected(*buffer.error());
    if (!parsed) return parsed;
    return buffer.finish();
}

}  // namespace

Result<DataFolder> DataFolder::open(const std::string& path) {
    base::Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd) return DataFolder(path, std::move(fd));
    if (errno == ENOENT || errno == ENOTDIR)
        return fail(Errc::data_invalid,
                    fmt::format("{}: there is no such folder; --data-dir names it", printable(path)));
    return std::unexpected(base::os_error(errno, "open " + printable(path)));
}

Result<base::Fd> DataFolder::open_below(const std::string& name, int flags) const {
    open_how how{};
    // A pipe must not stop us.
    how.flags = static_cast<std::uint64_t>(flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    base::Fd fd(static_cast<int>(syscall(SYS_openat2, fd_.get(), name.c_str(), &how, sizeof how)));
    // Where the kernel or a sandbox has no such call, no link is followed at all.
    if (!fd && (errno == ENOSYS || errno == EPERM))
        fd = base::Fd(openat(fd_.get(), name.c_str(), static_cast<int>(how.flags) | O_NOFOLLOW));
    if (fd) return fd;
    const std::string shown = printable(path_ + "/" + name);
    if (errno == EXDEV || errno == ELOOP)
        return fail(Errc::data_invalid, shown + ": a symbolic link that leads out of the data folder, or nowhere");
    if (errno == ENOENT || errno == ENOTDIR)
        return fail(Errc::data_invalid, shown + ": there is no such file or folder");
    return std::unexpected(base::os_error(errno, "open " + shown));
}

Result<std::vector<SourceFile>> DataFolder::files_of(const std::string& table) const {
    auto folder = open_below(table, O_DIRECTORY);
    if (!folder) return std::unexpected(folder.error());
    const std::string shown = path_ + "/" + table;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(folder->get()), closedir);
    if (!entries) return std::unexpected(base::os_error(errno, "read " + printable(shown)));
    // Closed with the entries.
    static_cast<void>(folder->release());
    std::vector<SourceFile> files;
    errno = 0;
    while (const dirent* const entry = readdir(entries.get())) {
        const std::string name = entry->d_name;
        const std::string small = in_small_letters(name);
        // Editors keep hidden files.
        if (name.starts_with('.')) continue;
        if (name.ends_with(csv_suffix) || name.ends_with(yaml_suffix)) {
            files.push_back({name, fmt::format("{}/{}", shown, name), fmt::format("{}/{}", table, name)});
        } else if (small.ends_with(csv_suffix) || small.ends_with(yaml_suffix) || small.ends_with(".yml")) {
            return fail(Errc::data_invalid,
                        fmt::format("{}/{}: data files end in .csv or .yaml", printable(shown), printable(name)));
        }
    }
    if (errno != 0) return std::unexpected(base::os_error(errno, "read " + printable(shown)));
    if (files.empty())
        return fail(Errc::data_invalid, fmt::format("{}: there is no .csv and no .yaml file", printable(shown)));
    std::ranges::sort(files, {}, &SourceFile::name);
    return files;
}

Result<void> DataFolder::read(const SourceFile& file, RowSink& sink, Sha256& digest) const {
    const auto fd = open_below(file.below, 0);
    if (!fd) return std::unexpected(fd.error());
    struct stat status{};
    if (fstat(fd->get(), &status) != 0) return std::unexpected(base::os_error(errno, "read " + printable(file.path)));
    if (!S_ISREG(status.st_mode)) return fail(Errc::data_invalid, printable(file.path) + ": this is no regular file");
    const bool is_yaml = file.name.ends_with(yaml_suffix);
    if (is_yaml && status.st_size > largest_yaml)
        return fail(Errc::data_invalid,
                    printable(file.path) + ": more than 64 MiB of YAML; CSV is read as quickly as the disk allows");
    TextFile text(*fd, file.path, digest);
    return is_yaml ? read_as_yaml(file, text, sink) : read_as_csv(file, text, sink);
}

}  // namespace holdfast::guards::data
