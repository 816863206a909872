#include "values/small_file.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace holdfast {

std::optional<std::string> small_file(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    std::string text;
    std::array<char, 4096> part{};
    ssize_t got = 0;
    while ((got = read(file, part.data(), part.size())) > 0 || (got < 0 && errno == EINTR))
        if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
    close(file);
    return text;
}

}  // namespace holdfast
