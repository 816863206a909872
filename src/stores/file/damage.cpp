#include "stores/file/damage.hpp"

#include "kernel/step.hpp"
#include "stores/file/audit_log.hpp"
#include "stores/file/lock_folder.hpp"

#include <fmt/format.h>

namespace holdfast::stores::file {

Result<DamagedLock> look_at_damage(const Folder& folder, const LockName& name) {
    auto bytes = folder.read(record_file, longest_record);
    if (!bytes) return std::unexpected(bytes.error());
    DamagedLock found{.damage = {.what = *bytes ? "the record" : "the record, which is missing"},
                      .saved = {kernel::blank(name), {}, 0, {}}};
    if (*bytes) found.damage.bytes = std::move(**bytes);
    auto log = read_what_is_left(folder, name);
    if (!log) return std::unexpected(log.error());
    if (log->events.empty()) return found;
    found.damage.saw_oldest(log->events.front());
    for (const AuditEvent& event : log->events) found.damage.saw_newest(event);
    kernel::Record& record = found.saved.record;
    record.seq = found.damage.seq;
    record.chain = found.damage.chain;
    record.pruned_seq = found.damage.pruned_seq;
    found.saved.audit_bytes = log->bytes_of_newest_part;
    return found;
}

Result<void> keep_damaged(const Folder& folder, const kernel::Damage& damage, Instant now) {
    if (damage.bytes.empty()) return {};
    return folder.write(fmt::format("{}.damaged-{}", record_file, now.time_since_epoch().count()), damage.bytes);
}

}  // namespace holdfast::stores::file
