#pragma once

#include "holdfast/store.hpp"
#include "support/temp_folder.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::tests {

/// Where a store of `scheme` lives in `folder`, with every promise of durability switched on.
[[nodiscard]] std::string url_in(const std::filesystem::path& folder, const std::string& scheme);

/// The stores of this build that processes can share.
[[nodiscard]] std::vector<std::string> shared_schemes();

/// `rounds` as scaled for this run; less where every process first has to prove to a server who it is, which takes
/// far longer than the lock.
[[nodiscard]] int rounds_on(const std::string& scheme, int rounds);

/// Those of them that write to the disk by themselves.
[[nodiscard]] std::vector<std::string> schemes_on_disk();

/// Opens a store by the host's clock. Throws if it does not open: after a crash, that is a failure.
[[nodiscard]] std::unique_ptr<Store> open_shared(const std::string& url);

/// Far enough away that only a hang meets it.
[[nodiscard]] Deadline patient();

/// Throws unless the lock can be read, its audit log is whole and its tokens only rose.
LockStatus sound_status(Store& store, const LockName& name);

}  // namespace holdfast::tests
