#include "support/servers/clock.hpp"

#include "base/fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <system_error>
#include <unistd.h>

namespace holdfast::tests {

namespace {

std::string shim() {
    std::ifstream file(HOLDFAST_CLOCK_SHIM, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

// The server runs as another user, which may not read the build folder, and a library that cannot be read is not
// preloaded.
ServerClock::ServerClock()
    : file_(folder_.write("offset", std::string(sizeof(std::int64_t), '\0'))),
      shim_(folder_.write("shim.so", shim())) {}

std::vector<std::string> ServerClock::environment() const {
    return {"HOLDFAST_CLOCK_OFFSET=" + file_, "LD_PRELOAD=" + shim_};
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
