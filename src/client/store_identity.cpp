#include "client/store_identity.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::client {
namespace {

constexpr std::chrono::seconds time_to_answer{10};

Result<StoreId> identify(Store& store, const Clock& clock) {
    if (const auto known = store.store_id()) return *known;
    const auto created = store.apply({}, Deadline::in(clock, time_to_answer));
    if (!created) return std::unexpected(created.error());
    if (const auto known = store.store_id()) return *known;
    return fail(Errc::store_unavailable, fmt::format("{} does not say its store_id", printable(store.info().url)));
}

}  // namespace

Result<std::vector<StoreId>> identify(std::span<Store* const> stores, const Clock& clock) {
    std::vector<StoreId> ids;
    for (Store* store : stores) {
        const auto id = identify(*store, clock);
        if (!id) return std::unexpected(id.error());
        if (const auto same = std::ranges::find(ids, *id); same != ids.end())
            return fail(
                Errc::config,
                fmt::format("{} and {} have the same store_id, {}. If they are two spellings of one store, name "
                            "it once. If one is a copy of the other, it is a store of its own that only looks "
                            "like the same one: use one of them and remove the copy",
                            printable(stores[static_cast<std::size_t>(same - ids.begin())]->info().url),
                            printable(store->info().url), id->text()));
        ids.push_back(*id);
    }
    return ids;
}

}  // namespace holdfast::client
