#pragma once

#include "base/fd.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <stop_token>
#include <string>

namespace holdfast::base {

/// Hears through inotify that a file or a folder's entries were touched.
///
/// Make the watch first, then look, then wait: what happens in between is not missed.
class FileWatch {
public:
    enum class Hears { changes, changes_and_reads };

    /// A path that does not exist is an error of its own kind of silence, so it is `store_unavailable`.
    [[nodiscard]] static Result<FileWatch> on(const std::string& path, Hears hears = Hears::changes);

    /// True when something happened, false when `deadline` passed or `stop` was asked for.
    [[nodiscard]] bool wait(const Clock& clock, Deadline deadline, const std::stop_token& stop = {});

private:
    explicit FileWatch(Fd inotify) : inotify_(std::move(inotify)) {}
    Fd inotify_;
};

}  // namespace holdfast::base
