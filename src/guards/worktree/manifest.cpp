// A manifest is a header, entries with varints and the path cut by what it shares with the one before, an end mark, the
// number of entries, and a SHA-256 of all that. Binary, because a second snapshot reads it whole, and most of what that
// costs would be parsing.
#include "guards/worktree/manifest.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "values/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

constexpr std::string_view header = "holdfast manifest 1\n";
constexpr char end_mark = '.';
constexpr std::size_t flush_at = std::size_t{1} << 16;
/// The parts of an entry cannot be longer: a path, a target, names and values of attributes.
constexpr std::uint64_t longest_text = std::uint64_t{1} << 20;
constexpr std::uint64_t most_attributes = 4096;

std::span<const std::uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void put(std::string& out, std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>((number & 0x7f) | 0x80));
    out.push_back(static_cast<char>(number));
}
/// Small numbers of either sign are short.
void put_signed(std::string& out, std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    put(out, (bits << 1) ^ (number < 0 ? ~std::uint64_t{0} : 0));
}
void put(std::string& out, std::string_view text) {
    put(out, text.size());
    out.append(text);
}

/// What a snapshot holds of an entry, after its path. The root hash is of this.
std::string content_of(const Entry& entry) {
    std::string out;
    out.push_back(static_cast<char>(entry.kind));
    put(out, entry.mode);
    put(out, entry.owner);
    put(out, entry.group);
    put_signed(out, entry.mtime.seconds);
    put_signed(out, entry.mtime.nanoseconds);
    put(out, entry.size);
    put(out, entry.device);
    put(out, entry.target);
    put(out, entry.attributes.size());
    for (const auto& [name, value] : entry.attributes) {
        put(out, name);
        put(out, value);
    }
    out.append(reinterpret_cast<const char*>(entry.hash.data()), entry.kind == Kind::file ? entry.hash.size() : 0);
    return out;
}

void count(ManifestTotals& totals, Sha256& root, const Entry& entry, std::string_view content) {
    ++totals.entries;
    if (entry.kind == Kind::file) {
        ++totals.files;
        totals.bytes += entry.size;
    }
    if (entry.kind == Kind::socket || entry.kind == Kind::block_device || entry.kind == Kind::character_device)
        ++totals.special;
    std::string path;
    put(path, entry.path);
    root.update(bytes_of(path));
    root.update(bytes_of(content));
}

Error damaged(std::string_view why) {
    return {Errc::payload_hash_mismatch, "the manifest of the snapshot is not what was stored: " + std::string(why)};
}

bool is_kind(char letter) { return std::string_view("dfhlpsbc").find(letter) != std::string_view::npos; }

/// Takes values from the front of a text. After the first that is not there, everything is zero.
class Taking {
public:
    explicit Taking(std::string_view text) : text_(text) {}

    char letter() {
        if (text_.empty()) return give_up();
        const char first = text_.front();
        text_.remove_prefix(1);
        return first;
    }
    std::uint64_t number() {
        std::uint64_t number = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<std::uint8_t>(letter());
            number |= std::uint64_t{byte & 0x7fU} << shift;
            if ((byte & 0x80U) == 0) return number;
        }
        give_up();
        return 0;
    }
    std::int64_t signed_number() {
        const std::uint64_t bits = number();
        return static_cast<std::int64_t>(bits >> 1) ^ -static_cast<std::int64_t>(bits & 1);
    }
    std::string_view text() {
        const std::uint64_t size = number();
        return raw(size > longest_text ? text_.size() + 1 : size);
    }
    std::string_view raw(std::uint64_t size) {
        if (size > text_.size()) {
            give_up();
            return {};
        }
        const auto taken = text_.substr(0, size);
        text_.remove_prefix(size);
        return taken;
    }

    [[nodiscard]] bool is_short() const { return is_short_; }
    [[nodiscard]] std::size_t left() const { return text_.size(); }

private:
    char give_up() {
        is_short_ = true;
        text_ = {};
        return 0;
    }
    std::string_view text_;
    bool is_short_ = false;
};

void take_content(Taking& from, Entry& entry) {
    entry.mode = static_cast<std::uint32_t>(from.number());
    entry.owner = static_cast<std::uint32_t>(from.number());
    entry.group = static_cast<std::uint32_t>(from.number());
    entry.mtime.seconds = from.signed_number();
    entry.mtime.nanoseconds = from.signed_number();
    entry.size = from.number();
    entry.device = from.number();
    entry.target = from.text();
    const std::uint64_t attributes = std::min(from.number(), most_attributes);
    for (std::uint64_t i = 0; i < attributes && !from.is_short(); ++i) {
        std::string name(from.text());
        entry.attributes.emplace_back(std::move(name), from.text());
    }
    if (entry.kind == Kind::file) {
        const auto hash = from.raw(entry.hash.size());
        std::ranges::copy(bytes_of(hash), entry.hash.begin());
    }
}

constexpr std::uint64_t racy_bit = 1;
constexpr std::uint64_t hides_bit = 2;

}  // namespace

bool comes_before(const std::string& a, const std::string& b) {
    // A slash sorts before every byte of a name, so that a folder's entries follow it at once.
    const auto weight = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
    return std::ranges::lexicographical_compare(a, b, {}, weight, weight);
}

Result<ManifestWriter> ManifestWriter::create(int folder, const std::string& name) {
    base::Fd file(openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return std::unexpected(base::os_error(errno, "write the manifest"));
    ManifestWriter writer(std::move(file));
    writer.buffer_ = header;
    return writer;
}

Result<void> ManifestWriter::add(const Entry& entry) {
    const auto [mine, last] = std::ranges::mismatch(entry.path, last_path_);
    const auto shared = static_cast<std::size_t>(mine - entry.path.begin());
    const std::string content = content_of(entry);
    std::string& out = buffer_;
    out.push_back(content.front());
    put(out, shared);
    put(out, std::string_view(entry.path).substr(shared));
    out.append(content, 1);
    put(out, entry.identity.device);
    put(out, entry.identity.inode);
    put_signed(out, entry.identity.ctime.seconds);
    put_signed(out, entry.identity.ctime.nanoseconds);
    put(out, (entry.is_racy ? racy_bit : 0) | (entry.hides_others ? hides_bit : 0));
    last_path_ = entry.path;
    count(totals_, root_, entry, content);
    return buffer_.size() < flush_at ? Result<void>() : flush();
}

Result<void> ManifestWriter::flush() {
    bytes_.update(bytes_of(buffer_));
    if (const int error = write_all(file_.get(), buffer_.data(), buffer_.size()); error != 0)
        return std::unexpected(base::os_error(error, "write the manifest"));
    buffer_.clear();
    return {};
}

Result<ManifestTotals> ManifestWriter::finish() {
    buffer_.push_back(end_mark);
    put(buffer_, totals_.entries);
    if (auto flushed = flush(); !flushed) return std::unexpected(flushed.error());
    totals_.file_hash = bytes_.finish();
    totals_.root_hash = root_.finish();
    const auto& hash = totals_.file_hash;
    if (const int error = write_all(file_.get(), hash.data(), hash.size()); error != 0)
        return std::unexpected(base::os_error(error, "write the manifest"));
    return totals_;
}

Result<ManifestReader> ManifestReader::open(int folder, const std::string& name) {
    base::Fd file(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) return std::unexpected(base::os_error(errno, "read the manifest"));
    ManifestReader reader(std::move(file));
    auto filled = reader.fill(header.size());
    if (!filled) return std::unexpected(filled.error());
    if (!*filled || std::string_view(reader.buffer_).substr(0, header.size()) != header)
        return fail(Errc::format_unsupported, "the manifest of the snapshot has a form that is not known here");
    reader.bytes_.update(bytes_of(header));
    reader.at_ = header.size();
    return reader;
}

/// Reads on until `wanted` bytes are there. False: the file ends before.
Result<bool> ManifestReader::fill(std::size_t wanted) {
    while (buffer_.size() - at_ < wanted) {
        if (is_whole_) return false;
        buffer_.erase(0, at_);
        at_ = 0;
        const std::size_t before = buffer_.size();
        buffer_.resize(before + std::max(flush_at, wanted));
        const ssize_t got = read(file_.get(), buffer_.data() + before, buffer_.size() - before);
        const int error = errno;
        buffer_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
        if (got < 0 && error == EINTR) continue;
        if (got < 0) return std::unexpected(base::os_error(error, "read the manifest"));
        if (got == 0) is_whole_ = true;
    }
    return true;
}

Result<std::optional<Entry>> ManifestReader::end_of_list() {
    Taking from(std::string_view(buffer_).substr(at_));
    from.letter();
    const std::uint64_t entries = from.number();
    const std::size_t used = buffer_.size() - at_ - from.left();
    bytes_.update(bytes_of(std::string_view(buffer_).substr(at_, used)));
    file_hash_ = bytes_.finish();
    const auto stored = from.raw(file_hash_.size());
    if (from.is_short() || from.left() > 0 || !std::ranges::equal(bytes_of(stored), file_hash_) ||
        entries != totals_.entries)
        return std::unexpected(damaged("its hash does not fit"));
    totals_.file_hash = file_hash_;
    totals_.root_hash = root_.finish();
    is_done_ = true;
    return std::nullopt;
}

Result<std::optional<Entry>> ManifestReader::next() {
    if (is_done_) return std::nullopt;
    for (std::size_t wanted = 4096;; wanted *= 4) {
        const auto filled = fill(wanted);
        if (!filled) return std::unexpected(filled.error());
        if (at_ == buffer_.size()) return std::unexpected(damaged("it is cut short"));
        if (buffer_[at_] == end_mark) {
            if (*filled && !is_whole_) continue;  // The end is short, and belongs to the end of the file.
            return end_of_list();
        }
        Taking from(std::string_view(buffer_).substr(at_));
        Entry entry;
        const char letter = from.letter();
        const std::uint64_t shared = from.number();
        const auto rest = from.text();
        if (!is_kind(letter) || shared > last_path_.size()) return std::unexpected(damaged("it has a strange entry"));
        entry.kind = static_cast<Kind>(letter);
        entry.path = last_path_.substr(0, shared).append(rest);
        take_content(from, entry);
        entry.identity.device = from.number();
        entry.identity.inode = from.number();
        entry.identity.ctime.seconds = from.signed_number();
        entry.identity.ctime.nanoseconds = from.signed_number();
        const std::uint64_t bits = from.number();
        entry.is_racy = (bits & racy_bit) != 0;
        entry.hides_others = (bits & hides_bit) != 0;
        if (from.is_short()) {
            if (!*filled) return std::unexpected(damaged("it is cut short"));
            continue;
        }
        if (totals_.entries > 0 && !comes_before(last_path_, entry.path))
            return std::unexpected(damaged("it is out of order"));
        const std::size_t used = buffer_.size() - at_ - from.left();
        bytes_.update(bytes_of(std::string_view(buffer_).substr(at_, used)));
        at_ += used;
        last_path_ = entry.path;
        count(totals_, root_, entry, content_of(entry));
        return entry;
    }
}

}  // namespace holdfast::guards::worktree
