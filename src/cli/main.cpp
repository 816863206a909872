#include "cli/app.hpp"

int main(int argc, char** argv) { return holdfast::cli::run(argc, argv); }
