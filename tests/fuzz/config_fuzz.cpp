// holdfast.toml. Whatever it contains, it is understood or refused with E_CONFIG in words that a terminal can show.
#include "config/holdfast_toml.hpp"
#include "fuzz/target.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

namespace holdfast::fuzz {
namespace {

/// The configuration is read from a file, so there is one, in memory.
std::string path_with(Bytes bytes) {
    static const int file = memfd_create("holdfast.toml", MFD_CLOEXEC);
    const bool written = file >= 0 && ftruncate(file, 0) == 0 &&
                         pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    require(written, "cannot write to memory");
    return fmt::format("/proc/self/fd/{}", file);
}

std::vector<std::string> known_keys() { return {"store", "ttl", "wait", "max_hold", "unless_held", "json", "user"}; }

void run(Bytes bytes) {
    const auto config = config::read_config(path_with(bytes), known_keys);
    if (!config) {
        require(config.error().code == Errc::config, "refused with another code than config");
        require(!has_control(config.error().message), "the message could move a terminal");
        return;
    }
    require(config->has_value(), "a file that is there was not read");
    for (const auto& policy : (*config)->policies) require(!policy.match.empty(), "a policy that matches nothing");
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
