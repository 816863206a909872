#include "values/random.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <sys/random.h>
#include <sys/types.h>

namespace holdfast {

void fill_random(std::span<std::uint8_t> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, 0);
        if (got < 0 && errno != EINTR) std::abort();
        if (got > 0) done += static_cast<std::size_t>(got);
    }
}

}  // namespace holdfast
