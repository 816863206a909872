#include "base/os_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace holdfast::base {

std::string os_message(int errno_value) {
    // The common words, instead of those of the C library.
    switch (errno_value) {
        case ENOSPC: return "the disk is full";
        case EDQUOT: return "the disk quota of this user is used up";
        case EROFS: return "the file system is read-only";
        default: break;
    }
    const char* text = strerrordesc_np(errno_value);
    return text == nullptr ? fmt::format("error {}", errno_value) : text;
}

Error os_error(int errno_value, std::string_view doing) {
    const std::string what = fmt::format("cannot {}: {}", doing, os_message(errno_value));
    switch (errno_value) {
        case EACCES:
        case EPERM: return {Errc::denied, what + "; nothing was changed"};
        case ELOOP:
            return {Errc::store_unsafe, fmt::format("cannot {}: it is a symbolic link, which is refused", doing)};
        default: return {Errc::store_unavailable, what + "; nothing was changed"};
    }
}

}  // namespace holdfast::base
