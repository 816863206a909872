#include "cli/prompt.hpp"

#include <array>
#include <cstdio>
#include <unistd.h>

namespace holdfast::cli {

Result<bool> confirm(const Context& context, const std::string& question) {
    if (context.settings.on(opt::yes)) return true;
    if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0)
        return fail(Errc::usage, "nobody can be asked here; if you are sure, repeat it with --yes");
    std::fputs((question + " [y/N] ").c_str(), stderr);
    std::array<char, 16> answer{};
    if (std::fgets(answer.data(), answer.size(), stdin) == nullptr) return false;
    const std::string text(answer.data());
    return text == "y\n" || text == "Y\n" || text == "yes\n";
}

}  // namespace holdfast::cli
