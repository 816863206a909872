#include "torture/client/recorder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace torture {

std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t to_ns(holdfast::Boottime time) { return time.time_since_epoch().count() * 1'000'000; }

std::string under(const holdfast::LockId& id, holdfast::FencingToken token) {
    return fmt::format(R"(,"id":"{}","tok":{})", id.text(), token.value);
}

Recorder::Recorder(const std::string& file, std::string process)
    : file_(open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)), process_(std::move(process)) {
    if (!file_) throw std::system_error(errno, std::generic_category(), "open " + file);
}

std::uint64_t Recorder::begin(std::string_view op, std::string_view lock, std::string_view fields) {
    const std::uint64_t number = ++calls_;
    line(fmt::format(R"({{"e":"begin","p":"{}","i":{},"op":"{}","l":"{}"{},"t":{}}})", process_, number, op, lock,
                     fields, now_ns()));
    return number;
}

void Recorder::end(std::uint64_t number, std::string_view result, std::string_view fields) {
    line(fmt::format(R"({{"e":"end","p":"{}","i":{},"r":"{}"{},"t":{}}})", process_, number, result, fields, now_ns()));
}

void Recorder::believe(std::string_view lock, const holdfast::LockId& id, holdfast::FencingToken token,
                       std::int64_t now, std::int64_t until) {
    line(fmt::format(R"({{"e":"believe","p":"{}","l":"{}"{},"t":{},"until":{}}})", process_, lock, under(id, token),
                     now, until));
}

void Recorder::lost(std::string_view lock, const holdfast::LockId& id, holdfast::FencingToken token) {
    line(fmt::format(R"({{"e":"lost","p":"{}","l":"{}"{},"t":{}}})", process_, lock, under(id, token), now_ns()));
}

void Recorder::line(std::string text) {
    // One write, so that the lines of two processes do not mix. The kernel copies it page by page, and a process that
    // is killed in between leaves half a line. So a line takes a whole number of blocks, and no block crosses a page.
    constexpr std::size_t block = 512;
    text.resize((text.size() / block + 1) * block, ' ');
    text.back() = '\n';
    if (write(file_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        throw std::system_error(errno, std::generic_category(), "write the history");
}

}  // namespace torture
