#include "cli/app.hpp"

#include <malloc.h>

int main(int argc, char** argv) {
    // The threads of a command hardly allocate, and an arena for each costs more than all of that.
    mallopt(M_ARENA_MAX, 1);
    return holdfast::cli::run({argv + 1, argv + argc}, holdfast::host_clock());
}
