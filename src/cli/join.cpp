#include "cli/join.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

namespace holdfast::cli {

bool is_elsewhere(const InheritedLease& lease, const Store& store) {
    if (!lease.store_id) return false;
    const auto here = store.info().store_id;
    return here && *here != *lease.store_id;
}

Result<std::optional<client::JoinedLease>> join(Context& context, Store& store, const LockName& name,
                                                const client::JoinTerms& terms,
                                                const std::vector<InheritedLease>& inherited) {
    std::optional<Error> stale;
    for (const InheritedLease& lease : inherited) {
        if (lease.name != name || is_elsewhere(lease, store)) continue;
        auto joined = client::JoinedLease::prove(store, name, lease.as, terms, context.clock, Context::patience);
        if (joined) return std::move(*joined);
        if (!client::is_not_current(joined.error().code)) return std::unexpected(joined.error());
        // Now the store has said which one it is, unless it does not exist.
        if (!lease.store_id || lease.store_id == store.info().store_id) stale = joined.error();
    }
    if (stale)
        context.out.note(fmt::format("holdfast: a lease of {} in the environment is not current and is ignored: {}",
                                     printable(name.text()), printable(stale->message)));
    return std::nullopt;
}

}  // namespace holdfast::cli
