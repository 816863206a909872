#include "support/servers/clock.hpp"

#include "base/fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace holdfast::tests {

ServerClock::ServerClock() : file_(folder_.write("offset", std::string(sizeof(std::int64_t), '\0'))) {}

std::vector<std::string> ServerClock::environment() const {
    return {"HOLDFAST_CLOCK_OFFSET=" + file_, "LD_PRELOAD=" HOLDFAST_CLOCK_SHIM};
}

void ServerClock::step(std::chrono::milliseconds step) {
    offset_ += step;
    const std::int64_t value = offset_.count();
    // In place: the server has the file mapped.
    const base::Fd file(open(file_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file || pwrite(file.get(), &value, sizeof value, 0) != sizeof value)
        throw std::system_error(errno, std::generic_category(), "write " + file_);
}

}  // namespace holdfast::tests
