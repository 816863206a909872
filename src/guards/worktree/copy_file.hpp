#pragma once

#include "guards/worktree/entry.hpp"
#include "holdfast/error.hpp"

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <string_view>
#include <vector>

namespace holdfast::guards::worktree {

/// What all threads of a copy have learnt of the file systems.
struct CopyFacts {
    std::atomic<bool> can_reflink = true;       ///< Until the first refusal.
    std::atomic<std::uint64_t> reflinked = 0;   ///< Files.
    std::atomic<std::uint64_t> bytes_read = 0;  ///< For the rate.
};

/// Copies contents of files, hashes what it read, and compares every byte with the copy: a file system that copies by
/// itself has produced zeros before. For one thread.
class FileCopier {
public:
    explicit FileCopier(CopyFacts& facts, std::stop_token stop = {});

    struct Copied {
        std::uint64_t size = 0;  ///< Less than asked for if the file was shorter.
        Digest hash{};
        bool is_equal = true;  ///< False: the copy has other bytes than were read.
    };
    /// The first `size` bytes of `from` into the empty file `to`; holes stay holes.
    [[nodiscard]] Result<Copied> copy(int from, int to, std::uint64_t size, std::string_view shown);
    /// Only the hash.
    [[nodiscard]] Result<Copied> hash(int from, std::uint64_t size, std::string_view shown);

private:
    [[nodiscard]] Result<Copied> run(int from, int to, std::uint64_t size, std::string_view shown);

    CopyFacts& facts_;
    std::stop_token stop_;
    std::vector<std::uint8_t> read_;
    std::vector<std::uint8_t> written_;
};

/// Whether it is an error that a file system has no extended attributes. The payload of a snapshot can do without: its
/// manifest has them.
enum class Attributed { always, where_possible };

/// Gives a file or a folder that was just made what `entry` says: owner, attributes, mode and mtime. Only root can give
/// a file to somebody else; others keep it as theirs, without setuid and setgid, as `cp -a` does.
[[nodiscard]] Result<void> apply_metadata(int fd, const Entry& entry, Attributed attributed = Attributed::always);
/// The same for a symbolic link or a FIFO in `folder`.
[[nodiscard]] Result<void> apply_metadata_at(int folder, const std::string& name, const Entry& entry,
                                             Attributed attributed = Attributed::always);
/// Makes the symbolic link or the FIFO that `entry` describes, and its metadata.
[[nodiscard]] Result<void> make_other(int folder, const std::string& name, const Entry& entry,
                                      Attributed attributed = Attributed::always);
/// A new file for `apply_metadata`; it must not exist.
[[nodiscard]] Result<int> create_file(int folder, const std::string& name, std::string_view shown);

}  // namespace holdfast::guards::worktree
