// stamp FILE ASKED: what a holder does in the hand-over measure. Holds for a while, and appends when it asked, when it
// began and when it ended.

#include "measures/stamps.hpp"

#include <cstdlib>

int main(int, char** argv) {
    const holdfast::bench::Stamps stamps(argv[1]);
    return stamps.hold(std::atoll(argv[2])) ? 0 : 1;
}
