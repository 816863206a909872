#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <stop_token>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] holdfast {

/// Opens the store that `url` names: `file:DIR`, `sqlite:FILE`, `memory:`; see `docs/reference/stores.md`.
///
/// Opening creates nothing: the first `apply` does, also when two come first at once, and until then
/// every lock reads as free. A store that is there is checked: an unknown format is
/// `format_unsupported`, unsafe permissions are `store_unsafe`. A store of grade C is refused with `store_unsafe`
/// unless the URL says `allow_lossy=on`. No error repeats a password of the URL.
///
/// `clock` must outlive the store.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view url, const Clock& clock = host_clock());

/// How a store is opened. Everything has a default.
struct OpenOptions {
    const Clock* clock = &host_clock();  ///< Must outlive the store.
    Deadline deadline = Deadline::never();
    std::stop_token cancel{};
};

/// The same within a time that the caller sets: `store_unavailable` when `deadline` has passed on `clock`, and
/// `cancelled` when `cancel` was asked to stop. Nothing was changed then.
///
/// A driver that is waiting for its server cannot be interrupted. It is left to end by itself, on a thread that lasts
/// about ten seconds at most, and the process does not end before it: `clock` must live as long.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view url, const OpenOptions& options);

/// Whether `url` begins with the scheme of a store, or with another name of one: `postgresql:`.
[[nodiscard]] bool has_known_scheme(std::string_view url);

/// The schemes that this build knows, for `version` and for messages.
[[nodiscard]] std::vector<std::string_view> known_schemes();

/// The exact statements with which the first use creates the store's schema; empty where there is none.
[[nodiscard]] Result<std::string_view> schema_of(std::string_view url);

}  // namespace holdfast
