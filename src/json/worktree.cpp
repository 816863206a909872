#include "json/worktree.hpp"

#include "json/fields.hpp"
#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <fmt/format.h>

namespace holdfast::json {
namespace {

Value hex(const Digest& digest) { return Value::text(to_hex(digest)); }

Digest hash_of(const Object& object) {
    const Value written = object.done();
    const std::string& text = written.written();
    return sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

/// A newer format is refused before any of its fields is looked at.
Result<void> expect_format(Fields& fields) {
    const auto format = fields.number("format");
    if (fields.error()) return std::unexpected(*fields.error());
    if (format == worktree_format) return {};
    return fail(Errc::format_unsupported,
                fmt::format("the repository has format {}, and this Holdfast knows {}; use a newer one", format,
                            worktree_format));
}

Object formatted() {
    Object object;
    object.set("format", Value::number(worktree_format));
    return object;
}

Result<WorktreeRow> read_row(const Node& node, const std::string& where) {
    Fields fields(node, where);
    WorktreeRow row;
    row.worktree_id = fields.text("worktree_id");
    const std::string mode = fields.text("mode");
    row.is_shared = mode == "shared";
    if (!row.is_shared && mode != "exclusive") fields.refuse("mode", "is neither exclusive nor shared");
    row.created_at = fields.time("created_at");
    row.head = fields.text_or_empty("head");
    if (const Node* seal = fields.object_if("seal")) {
        Fields inner(*seal, fields.path_of("seal"));
        row.seal = WorktreeSeal{inner.number("token"), inner.text("lock_id")};
        if (inner.error()) return std::unexpected(*inner.error());
    }
    if (fields.error()) return std::unexpected(*fields.error());
    return row;
}

/// Everything but the checksum, in the order of the file.
Object descriptor_fields(const SnapshotDescriptor& descriptor, Object object) {
    object.set("snapshot_id", Value::text(descriptor.snapshot_id))
        .set("worktree_id", Value::text(descriptor.worktree_id))
        .set("parent_id", Value::text_or_null(descriptor.parent_id))
        .set("created_at", Value::time(descriptor.created_at))
        .set("message", Value::text_or_null(descriptor.message))
        .set("consistency_level", Value::text(name_of(descriptor.consistency)))
        .set("mode", Value::text(descriptor.is_shared ? "shared" : "exclusive"))
        .set("fencing_token", descriptor.lock_id.empty() ? Value() : Value::number(descriptor.token))
        .set("lock_id", Value::text_or_null(descriptor.lock_id))
        .set("holder_id", Value::text_or_null(descriptor.holder_id))
        .set("engine", Value::text(descriptor.engine))
        .set("payload_root_hash", hex(descriptor.payload_root_hash))
        .set("manifest_hash", hex(descriptor.manifest_hash))
        .set("entries", Value::number(descriptor.entries))
        .set("files", Value::number(descriptor.files))
        .set("bytes", Value::number(descriptor.bytes))
        .set("special", Value::number(descriptor.special))
        .set("excluded", Value::number(descriptor.excluded));
    return object;
}

std::string_view name_of(RestoreIntent::State state) {
    switch (state) {
        case RestoreIntent::State::copying: return "copying";
        case RestoreIntent::State::exchanging: return "exchanging";
        case RestoreIntent::State::settled: return "settled";
        case RestoreIntent::State::finished: return "finished";
    }
    return "";
}

std::string_view name_of(RestoreIntent::Workplace workplace) {
    switch (workplace) {
        case RestoreIntent::Workplace::control: return "control";
        case RestoreIntent::Workplace::repository: return "repository";
        case RestoreIntent::Workplace::worktree: return "worktree";
    }
    return "";
}

Object event_fields(const WorktreeEvent& event) {
    return Object()
        .set("seq", Value::number(event.seq))
        .set("at", Value::time(event.at))
        .set("event", Value::text(event.event))
        .set("worktree_id", Value::text_or_null(event.worktree_id))
        .set("snapshot_id", Value::text_or_null(event.snapshot_id))
        .set("token", event.lock_id.empty() ? Value() : Value::number(event.token))
        .set("lock_id", Value::text_or_null(event.lock_id))
        .set("actor", Value::text_or_null(event.actor))
        .set("details", Value::text_or_null(event.details))
        .set("prev_hash", hex(event.prev_hash));
}

}  // namespace

std::string_view name_of(Consistency level) { return level == Consistency::quiesced ? "quiesced" : "best_effort"; }

Result<Consistency> consistency_named(std::string_view text) {
    if (text == "quiesced") return Consistency::quiesced;
    if (text == "best_effort") return Consistency::best_effort;
    return fail(Errc::usage, "a consistency level is quiesced or best_effort");
}

Object worktree_registry(const WorktreeRegistry& registry) {
    std::vector<Value> rows;
    for (const WorktreeRow& row : registry.worktrees) {
        Object object;
        object.set("worktree_id", Value::text(row.worktree_id))
            .set("mode", Value::text(row.is_shared ? "shared" : "exclusive"))
            .set("created_at", Value::time(row.created_at))
            .set("head", Value::text_or_null(row.head))
            .set("seal", row.seal ? Object()
                                        .set("token", Value::number(row.seal->token))
                                        .set("lock_id", Value::text(row.seal->lock_id))
                                        .done()
                                  : Value());
        rows.push_back(object.done());
    }
    return formatted().set("repository_id", Value::text(registry.repository_id)).set("worktrees", Value::array(rows));
}

Result<WorktreeRegistry> read_worktree_registry(const Node& node) {
    Fields fields(node);
    if (auto known = expect_format(fields); !known) return std::unexpected(known.error());
    WorktreeRegistry registry;
    registry.repository_id = fields.text("repository_id");
    const Node::Array& rows = fields.array("worktrees");
    if (fields.error()) return std::unexpected(*fields.error());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        auto row = read_row(rows[i], fmt::format("worktrees[{}]", i));
        if (!row) return std::unexpected(row.error());
        registry.worktrees.push_back(*std::move(row));
    }
    return registry;
}

Object snapshot_descriptor(const SnapshotDescriptor& descriptor) {
    Object object = descriptor_fields(descriptor, formatted());
    return object.set("descriptor_checksum", hex(hash_of(object)));
}

Result<SnapshotDescriptor> read_snapshot_descriptor(const Node& node) {
    Fields fields(node);
    if (auto known = expect_format(fields); !known) return std::unexpected(known.error());
    SnapshotDescriptor read;
    read.snapshot_id = fields.text("snapshot_id");
    read.worktree_id = fields.text("worktree_id");
    read.parent_id = fields.text_or_empty("parent_id");
    read.created_at = fields.time("created_at");
    read.message = fields.text_or_empty("message");
    const auto level = consistency_named(fields.text("consistency_level"));
    if (!level) return std::unexpected(level.error());
    read.consistency = *level;
    read.is_shared = fields.text("mode") == "shared";
    read.token = fields.number_if("fencing_token").value_or(0);
    read.lock_id = fields.text_or_empty("lock_id");
    read.holder_id = fields.text_or_empty("holder_id");
    read.engine = fields.text("engine");
    read.payload_root_hash = fields.digest("payload_root_hash");
    read.manifest_hash = fields.digest("manifest_hash");
    read.entries = fields.number("entries");
    read.files = fields.number("files");
    read.bytes = fields.number("bytes");
    read.special = fields.number("special");
    read.excluded = fields.number("excluded");
    const Digest checksum = fields.digest("descriptor_checksum");
    if (fields.error()) return std::unexpected(*fields.error());
    if (hash_of(descriptor_fields(read, formatted())) != checksum)
        return fail(
            Errc::payload_hash_mismatch,
            fmt::format("the descriptor of {} is not what was stored: its checksum does not fit", read.snapshot_id));
    return read;
}

Object snapshot_info(const SnapshotDescriptor& descriptor) {
    Object object = descriptor_fields(descriptor, Object());
    if (descriptor.consistency == Consistency::best_effort) object.set("warning", Value::text("best_effort"));
    return object.set("high_risk", Value::boolean(descriptor.is_shared));
}

Object worktree(const WorktreeRow& row, std::string_view path) {
    return Object()
        .set("worktree_id", Value::text(row.worktree_id))
        .set("mode", Value::text(row.is_shared ? "shared" : "exclusive"))
        .set("high_risk", Value::boolean(row.is_shared))
        .set("path", Value::text(path))
        .set("created_at", Value::time(row.created_at))
        .set("head", Value::text_or_null(row.head));
}

Object worktrees(const std::vector<Value>& rows, std::string_view repository_id) {
    return Object().set("repository_id", Value::text(repository_id)).set("worktrees", Value::array(rows));
}

Object worktree_status(const WorktreeRow& row, std::string_view path, const LockStatus& lock) {
    Object document = worktree(row, path);
    document.set("state", Value::text(name_of(lock.state))).set("fencing_token", Value::number(lock.token.value));
    if (!lock.lease) return document.set("lock", Value());
    const Lease& lease = *lock.lease;
    return document.set("lock", Object()
                                    .set("lock_id", Value::text(lease.lock_id.text()))
                                    .set("worktree_id", Value::text(row.worktree_id))
                                    .set("holder_id", Value::text(lease.holder.text))
                                    .set("created_at", Value::time(lease.acquired_at))
                                    .set("last_renewed_at", Value::time(lease.renewed_at))
                                    .set("lease_expires_at", Value::time(lease.expires_at))
                                    .set("fencing_token", Value::number(lease.token.value))
                                    .set("operation", Value::text_or_null(lease.operation))
                                    .done());
}

Object worktree_history(const WorktreeRow& row, const std::vector<Value>& snapshots) {
    return Object()
        .set("worktree_id", Value::text(row.worktree_id))
        .set("mode", Value::text(row.is_shared ? "shared" : "exclusive"))
        .set("high_risk", Value::boolean(row.is_shared))
        .set("snapshots", Value::array(snapshots));
}

Object snapshot_intent(const SnapshotIntent& intent) {
    return formatted()
        .set("snapshot_id", Value::text(intent.snapshot_id))
        .set("worktree_id", Value::text(intent.worktree_id))
        .set("parent_id", Value::text_or_null(intent.parent_id))
        .set("started_at", Value::time(intent.started_at))
        .set("holder_id", Value::text_or_null(intent.holder_id))
        .set("token", intent.lock_id.empty() ? Value() : Value::number(intent.token))
        .set("lock_id", Value::text_or_null(intent.lock_id));
}

Result<SnapshotIntent> read_snapshot_intent(const Node& node) {
    Fields fields(node);
    if (auto known = expect_format(fields); !known) return std::unexpected(known.error());
    SnapshotIntent read;
    read.snapshot_id = fields.text("snapshot_id");
    read.worktree_id = fields.text("worktree_id");
    read.parent_id = fields.text_or_empty("parent_id");
    read.started_at = fields.time("started_at");
    read.holder_id = fields.text_or_empty("holder_id");
    read.token = fields.number_if("token").value_or(0);
    read.lock_id = fields.text_or_empty("lock_id");
    if (fields.error()) return std::unexpected(*fields.error());
    return read;
}

Object restore_intent(const RestoreIntent& intent) {
    return formatted()
        .set("restore_id", Value::text(intent.restore_id))
        .set("worktree_id", Value::text(intent.worktree_id))
        .set("snapshot_id", Value::text(intent.snapshot_id))
        .set("path", Value::text_or_null(intent.path))
        .set("top", Value::text_or_null(intent.top))
        .set("in_place", Value::boolean(intent.is_in_place))
        .set("state", Value::text(name_of(intent.state)))
        .set("workplace", Value::text(name_of(intent.workplace)))
        .set("inode", Value::number(intent.inode))
        .set("undo_id", Value::text_or_null(intent.undo_id))
        .set("started_at", Value::time(intent.started_at))
        .set("holder_id", Value::text_or_null(intent.holder_id))
        .set("token", intent.lock_id.empty() ? Value() : Value::number(intent.token))
        .set("lock_id", Value::text_or_null(intent.lock_id));
}

Result<RestoreIntent> read_restore_intent(const Node& node) {
    Fields fields(node);
    if (auto known = expect_format(fields); !known) return std::unexpected(known.error());
    RestoreIntent read;
    read.restore_id = fields.text("restore_id");
    read.worktree_id = fields.text("worktree_id");
    read.snapshot_id = fields.text("snapshot_id");
    read.path = fields.text_or_empty("path");
    read.top = fields.text_or_empty("top");
    read.is_in_place = fields.is_true("in_place");
    const std::string state = fields.text("state");
    using enum RestoreIntent::State;
    for (const auto known : {copying, exchanging, settled, finished})
        if (name_of(known) == state) read.state = known;
    if (name_of(read.state) != state) fields.refuse("state", "is none that a restore can be in");
    const std::string workplace = fields.text("workplace");
    using enum RestoreIntent::Workplace;
    for (const auto known : {control, repository, worktree})
        if (name_of(known) == workplace) read.workplace = known;
    if (name_of(read.workplace) != workplace) fields.refuse("workplace", "is none that a restore can use");
    read.inode = fields.number("inode");
    read.undo_id = fields.text_or_empty("undo_id");
    read.started_at = fields.time("started_at");
    read.holder_id = fields.text_or_empty("holder_id");
    read.token = fields.number_if("token").value_or(0);
    read.lock_id = fields.text_or_empty("lock_id");
    if (fields.error()) return std::unexpected(*fields.error());
    return read;
}

Object snapshot_ready(const SnapshotReady& ready) {
    return formatted()
        .set("snapshot_id", Value::text(ready.snapshot_id))
        .set("completed_at", Value::time(ready.completed_at))
        .set("payload_root_hash", hex(ready.payload_root_hash))
        .set("descriptor_hash", hex(ready.descriptor_hash));
}

Result<SnapshotReady> read_snapshot_ready(const Node& node) {
    Fields fields(node);
    if (auto known = expect_format(fields); !known) return std::unexpected(known.error());
    SnapshotReady read;
    read.snapshot_id = fields.text("snapshot_id");
    read.completed_at = fields.time("completed_at");
    read.payload_root_hash = fields.digest("payload_root_hash");
    read.descriptor_hash = fields.digest("descriptor_hash");
    if (fields.error()) return std::unexpected(*fields.error());
    return read;
}

Object worktree_event(const WorktreeEvent& event) {
    Object object = event_fields(event);
    return object.set("hash", hex(hash_of(object)));
}

Result<ReadWorktreeEvent> read_worktree_event(const Node& node) {
    Fields fields(node);
    ReadWorktreeEvent read;
    WorktreeEvent& event = read.event;
    event.seq = fields.number("seq");
    event.at = fields.time("at");
    event.event = fields.text("event");
    event.worktree_id = fields.text_or_empty("worktree_id");
    event.snapshot_id = fields.text_or_empty("snapshot_id");
    event.token = fields.number_if("token").value_or(0);
    event.lock_id = fields.text_or_empty("lock_id");
    event.actor = fields.text_or_empty("actor");
    event.details = fields.text_or_empty("details");
    event.prev_hash = fields.digest("prev_hash");
    read.hash = fields.digest("hash");
    if (fields.error()) return fail(Errc::audit_chain_broken, fields.error()->message);
    if (hash_of(event_fields(event)) != read.hash)
        return fail(Errc::audit_chain_broken, fmt::format("event {} was altered: its hash does not fit", event.seq));
    return read;
}

}  // namespace holdfast::json
