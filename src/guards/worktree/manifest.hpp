#pragma once

#include "base/fd.hpp"
#include "guards/worktree/entry.hpp"
#include "holdfast/error.hpp"
#include "values/sha256.hpp"

#include <optional>
#include <string>
#include <vector>

/// The list of a snapshot's entries, in the order of the tree. Written and read as a stream, so that memory does not
/// grow with the tree.
namespace holdfast::guards::worktree {

struct ManifestTotals {
    std::uint64_t entries = 0;
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    std::uint64_t special = 0;
    Digest root_hash{};  ///< Of everything that the snapshot holds: the same for the same tree, wherever it was read.
    Digest file_hash{};  ///< Of the bytes of the manifest.
};

class ManifestWriter {
public:
    /// Creates the file.
    [[nodiscard]] static Result<ManifestWriter> create(int folder, const std::string& name);

    /// Entries come in their order.
    [[nodiscard]] Result<void> add(const Entry& entry);
    /// Writes what is left. The caller makes it durable.
    [[nodiscard]] Result<ManifestTotals> finish();

private:
    explicit ManifestWriter(base::Fd file) : file_(std::move(file)) {}
    [[nodiscard]] Result<void> flush();

    base::Fd file_;
    std::string buffer_{};
    std::string last_path_{};
    ManifestTotals totals_{};
    Sha256 root_{};
    Sha256 bytes_{};
};

class ManifestReader {
public:
    [[nodiscard]] static Result<ManifestReader> open(int folder, const std::string& name);

    /// The next entry; absent at the end. `payload_hash_mismatch` if the file cannot be what was written: it is cut
    /// short, out of order, or its own hash does not fit.
    [[nodiscard]] Result<std::optional<Entry>> next();
    /// Of the bytes of the file, after its end was read.
    [[nodiscard]] const Digest& file_hash() const { return file_hash_; }
    /// Of the entries, after the end was read.
    [[nodiscard]] const ManifestTotals& totals() const { return totals_; }

private:
    explicit ManifestReader(base::Fd file) : file_(std::move(file)) {}
    [[nodiscard]] Result<bool> fill(std::size_t wanted);
    [[nodiscard]] Result<std::optional<Entry>> end_of_list();

    base::Fd file_;
    std::string buffer_{};
    std::size_t at_ = 0;
    bool is_whole_ = false;  ///< The file was read to its end.
    bool is_done_ = false;
    std::string last_path_{};
    ManifestTotals totals_{};
    Sha256 root_{};
    Sha256 bytes_{};
    Digest file_hash_{};
};

}  // namespace holdfast::guards::worktree
