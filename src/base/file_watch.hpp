#pragma once

#include "base/fd.hpp"
#include "holdfast/error.hpp"

#include <string>
#include <vector>

namespace holdfast::base {

/// Hears through inotify that files, or the entries of folders, were touched. One instance, of which a user has 128,
/// serves any number of paths.
///
/// Subscribe first, then read, then sleep: a change in between is not missed. For one thread at a time.
class FileWatches {
public:
    enum class Hears { changes, changes_and_reads };

    /// The number of the watch: the same for the same file. `store_unavailable` for a path that does not exist.
    [[nodiscard]] Result<int> add(const std::string& path, Hears hears = Hears::changes);
    void remove(int watch);

    struct Touched {
        bool all = false;  ///< Too many events: some were lost.
        std::vector<int> watches{};
        std::vector<int> ended{};  ///< Watches that have ended because their files were removed.
    };
    /// Never blocks.
    [[nodiscard]] Touched take_touched();

    /// Can be read when something was touched. Negative as long as nothing is watched.
    [[nodiscard]] int descriptor() const { return inotify_.get(); }

private:
    Fd inotify_{};
};

}  // namespace holdfast::base
