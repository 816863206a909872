#pragma once

#include "base/fd.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/lease.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

/// Writes the history that the checker reads; `checker/history.hpp` says what the lines mean.
namespace torture {

/// Nanoseconds of CLOCK_BOOTTIME, the one clock that all processes of a run share.
[[nodiscard]] std::int64_t now_ns();
[[nodiscard]] std::int64_t to_ns(holdfast::Boottime time);

/// Appends whole lines to a file that all processes of a run write to. May be called from any thread.
class Recorder {
public:
    /// Throws if the file cannot be opened.
    Recorder(const std::string& file, std::string process);

    [[nodiscard]] const std::string& process() const { return process_; }

    /// Before a call; gives its number. `fields` begins with a comma, or is empty.
    std::uint64_t begin(std::string_view op, std::string_view lock, std::string_view fields);
    /// After it. `result` is `ok`, `refused` or `unknown`.
    void end(std::uint64_t number, std::string_view result, std::string_view fields = {});
    void believe(std::string_view lock, const holdfast::LockId& id, holdfast::FencingToken token, std::int64_t now,
                 std::int64_t until);
    void lost(std::string_view lock, const holdfast::LockId& id, holdfast::FencingToken token);

    /// Any other line, in braces.
    void line(std::string text);

private:
    holdfast::base::Fd file_;
    std::string process_;
    std::atomic<std::uint64_t> calls_{0};
};

/// `,"id":"…","tok":…`.
[[nodiscard]] std::string under(const holdfast::LockId& id, holdfast::FencingToken token);

}  // namespace torture
