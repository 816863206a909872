#pragma once

#include "holdfast/store.hpp"
#include "support/temp_folder.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::tests {

/// Where a store of `scheme` lives in `folder`, with every promise of durability switched on. For a server: under the
/// folder's name. Call it before a fork, because the first call may start the server.
[[nodiscard]] std::string url_in(const std::filesystem::path& folder, const std::string& scheme);

/// The stores that live in files.
[[nodiscard]] std::vector<std::string> file_schemes();

/// The stores that live in a server.
[[nodiscard]] std::vector<std::string> server_schemes();

/// The stores of this build that processes can share.
[[nodiscard]] std::vector<std::string> shared_schemes();

/// How much longer than its ttl a lease can last there: what the clock that judges it does not show.
[[nodiscard]] std::chrono::milliseconds resolution_of(const std::string& scheme);

/// `rounds` on a store that is a file, fewer where each of them goes through a server.
[[nodiscard]] int rounds_on(const std::string& scheme, int rounds);

/// Opens a store by the host's clock. Throws if it does not open: after a crash, that is a failure.
[[nodiscard]] std::unique_ptr<Store> open_shared(const std::string& url);

/// Far enough away that only a hang meets it.
[[nodiscard]] Deadline patient();

/// Throws unless the lock can be read, its audit log is whole and its tokens only rose.
LockStatus sound_status(Store& store, const LockName& name);

}  // namespace holdfast::tests
