#include "base/interrupt.hpp"

#include <algorithm>
#include <poll.h>
#include <sys/eventfd.h>
#include <vector>

namespace holdfast::base {
namespace {

/// The longest sleep if the process had no descriptor left for the interrupt.
constexpr std::chrono::milliseconds nap{20};

}  // namespace

Interrupt::Interrupt() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Interrupt::raise() const {
    if (event_) eventfd_write(event_.get(), 1);
}

void Interrupt::sleep(std::span<const int> descriptors, std::chrono::milliseconds most) const {
    std::vector<pollfd> waited{{event_.get(), POLLIN, 0}};
    for (const int descriptor : descriptors) waited.push_back({descriptor, POLLIN, 0});
    if (!event_) most = std::min(most, nap);
    if (poll(waited.data(), waited.size(), static_cast<int>(most.count())) > 0 && waited.front().revents != 0) clear();
}

void Interrupt::clear() const {
    eventfd_t raised = 0;
    if (event_) eventfd_read(event_.get(), &raised);
}

}  // namespace holdfast::base
