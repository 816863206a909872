// Judges a recorded history: `torture_checker HISTORY`. 0: as promised; 1: a promise was broken; 3: a required fault
// never bit; 2: there is no history to judge.
#include "report.hpp"

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: torture_checker HISTORY\n");
        return 2;
    }
    try {
        std::ifstream file(arguments[1], std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        if (text.empty()) throw std::runtime_error("it is empty, or not there");
        const checker::History history = checker::parse(text);
        const checker::Verdict verdict = checker::judge(history);
        std::fputs(checker::report_on(history, verdict).c_str(), stdout);
        return checker::exit_status_of(verdict);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "torture_checker: %s: %s\n", arguments[1], error.what());
        return 2;
    }
}
