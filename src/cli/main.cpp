#include "cli/app.hpp"

int main(int argc, char** argv) { return holdfast::cli::run({argv + 1, argv + argc}, holdfast::host_clock()); }
