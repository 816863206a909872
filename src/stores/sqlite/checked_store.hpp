#pragma once

#include "stores/sqlite/connection.hpp"
#include "stores/sqlite/place.hpp"
#include "stores/sqlite/schema.hpp"
#include "stores/sqlite/tables.hpp"

#include <memory>
#include <vector>

namespace holdfast::stores::sqlite {

/// A connection to a store that is there and was checked.
class CheckedStore {
public:
    /// Null when nobody has created the store yet. `bonds` must outlive it.
    [[nodiscard]] static Result<std::unique_ptr<CheckedStore>> open(const Place& place, const Bonds& bonds, Sync sync);
    /// Creates the store. Only inside the gate.
    [[nodiscard]] static Result<void> create(const Place& place, const Clock& clock);

    CheckedStore(const CheckedStore&) = delete;
    CheckedStore& operator=(const CheckedStore&) = delete;
    ~CheckedStore();

    /// Turns the write-ahead log on, and upgrades a store of an older format. Only inside the gate.
    [[nodiscard]] Result<void> prepare_to_write();
    /// Moves the log into the database once it has grown. Only inside the gate, after a commit.
    void checkpoint_if_due();
    /// Closing will leave the log for others, instead of moving it into the database.
    void leave_log();

    [[nodiscard]] Database& database() { return database_; }
    [[nodiscard]] Tables& tables() { return tables_; }
    [[nodiscard]] std::int64_t format() const { return identity_.format; }
    [[nodiscard]] const StoreId& store_id() const { return identity_.store_id; }
    /// As far as this connection has read or written it.
    [[nodiscard]] bool was_used() const { return identity_.was_used; }
    void now_used() { identity_.was_used = true; }
    [[nodiscard]] const FileIdentity& file() const { return file_; }
    /// It was opened where nothing can be written.
    [[nodiscard]] bool is_read_only() const;
    [[nodiscard]] bool can_write() const { return can_write_; }
    [[nodiscard]] bool is_synced() const { return sync_ == Sync::on; }
    /// A buffer for the frames of a commit, kept for the next one.
    [[nodiscard]] std::vector<char>& memory_for_frames() { return memory_for_frames_; }

private:
    CheckedStore(Database database, const Bonds& bonds, const Identity& identity, const FileIdentity& file, Sync sync);

    Database database_;
    Tables tables_;
    Identity identity_;
    FileIdentity file_;
    Sync sync_;
    std::vector<char> memory_for_frames_{};
    bool can_write_ = false;
    int log_pages_ = 0;
};

}  // namespace holdfast::stores::sqlite
