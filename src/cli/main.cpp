#include "cli/app.hpp"
#include "cli/process_list.hpp"

#include <malloc.h>
#include <vector>

int main(int argc, char** argv) {
    // The threads of a command hardly allocate, and an arena for each costs more than all of that.
    mallopt(M_ARENA_MAX, 1);
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    holdfast::cli::hide_secrets({argv + 1, argv + argc});
    return holdfast::cli::run(arguments, holdfast::host_clock());
}
