#include "stores/redis/remote.hpp"

#include "base/real_clock.hpp"

namespace holdfast::stores::redis {

Remote::Remote(Address address, const Clock& clock)
    : clock_(clock), server_(std::move(address), clock), keys_(server_.address().prefix) {}

std::optional<StoreId> Remote::store_id() const {
    const std::scoped_lock lock(mutex_);
    return store_id_;
}

Result<Looked> Remote::run(const ScriptCall& call, Effect effect, Deadline deadline) {
    // Real time, also under a test's clock: it is compared with the server's clock.
    const Boottime sent = base::real_clock().boottime();
    auto answer = run_script(server_, call, effect, deadline);
    if (!answer) return std::unexpected(answer.error());
    auto outline = outline_of(answer->value(), server_.address());
    if (!outline) return std::unexpected(outline.error());
    server_clock_.saw(outline->time, sent, base::real_clock().boottime());
    if (outline->store_id) {
        const std::scoped_lock lock(mutex_);
        if (!store_id_) store_id_ = outline->store_id;
    }
    if (outline->was_used) was_used_ = true;
    const Instant now = clock_.judges().value_or(outline->time);
    return Looked{*outline, std::move(*answer), now};
}

Result<Looked> Remote::look(std::span<const Wanted> wanted, IfMissing missing, Deadline deadline) {
    Terms terms{.known = store_id(), .judged = clock_.judges()};
    // A store that existed and is gone is not created again: its locks may be held.
    if (missing == IfMissing::create) terms.proposed = terms.known ? terms.known : StoreId::random();
    return run(call_for(keys_, terms, wanted), Effect::none, deadline);
}

Result<Looked> Remote::commit(std::span<const Wanted> wanted, const PlannedWrite& planned, const Window& window,
                              Deadline deadline) {
    const Terms terms{.known = store_id(), .judged = clock_.judges(), .window = window};
    return run(call_for(keys_, terms, wanted, planned), Effect::changes, deadline);
}

Result<std::optional<Instant>> Remote::confirm(Deadline deadline) {
    const auto looked = look({}, IfMissing::nothing, deadline);
    if (!looked) return std::unexpected(looked.error());
    if (!looked->exists()) return std::nullopt;
    return looked->now;
}

}  // namespace holdfast::stores::redis
