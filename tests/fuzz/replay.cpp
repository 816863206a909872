// Goal: what fuzzing has found stays found, in every test run and with every compiler. Method: the corpus through
// the target, then a fixed number of changed copies of it. `replay CORPUS` for a test, `replay FILE` for one input.
#include "fuzz/target.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <unistd.h>
#include <vector>

namespace holdfast::fuzz {
namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::uint8_t>;

constexpr int changed_copies = 50'000;
constexpr std::size_t longest = 4096;

/// The input that runs now: what to show when it is the last.
Input current;  // NOLINT(bugprone-throwing-static-initialization)

void on_crash(int signal) {
    constexpr std::string_view note = "fuzz: the input follows, in hexadecimal\n";
    constexpr std::string_view digits = "0123456789abcdef";
    // Only calls that a signal handler may make; if they fail, there is nobody to tell.
    [[maybe_unused]] auto written = write(STDERR_FILENO, note.data(), note.size());
    for (const std::uint8_t byte : current) {
        const char pair[] = {digits[byte / 16], digits[byte % 16]};
        written = write(STDERR_FILENO, pair, 2);
    }
    written = write(STDERR_FILENO, "\n", 1);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void run(Input input) {
    current = std::move(input);
    LLVMFuzzerTestOneInput(current.data(), current.size());
}

Input read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Input> read_corpus(const fs::path& place) {
    if (fs::is_regular_file(place)) return {read_file(place)};
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(place)) paths.push_back(entry.path());
    std::ranges::sort(paths);
    std::vector<Input> corpus;
    std::ranges::transform(paths, std::back_inserter(corpus), read_file);
    return corpus;
}

class Changes {
public:
    explicit Changes(std::uint64_t seed) : random_(seed) {}

    std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

    /// `input` with one to four things done to it; `other` is where pieces come from.
    Input change(Input input, const Input& other) {
        for (std::size_t count = 1 + below(4); count > 0; --count) change_once(input, other);
        input.resize(std::min(input.size(), longest));
        return input;
    }

private:
    void change_once(Input& input, const Input& other) {
        const std::size_t at = below(input.size() + 1);
        const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
        const bool inside = at < input.size();
        switch (below(6)) {
            case 0:
                if (inside) *place = static_cast<std::uint8_t>(*place ^ (1U << below(8)));
                break;
            case 1:
                // Ends of ranges, where lengths and signs go wrong.
                if (inside) *place = std::array<std::uint8_t, 5>{0x00, 0x01, 0x7f, 0x80, 0xff}[below(5)];
                break;
            case 2: input.insert(place, static_cast<std::uint8_t>(below(256))); break;
            case 3: input.erase(place, place + static_cast<std::ptrdiff_t>(below(input.size() - at + 1))); break;
            case 4: input.resize(at); break;
            default: {
                const auto from = other.begin() + static_cast<std::ptrdiff_t>(below(other.size() + 1));
                const auto rest = static_cast<std::size_t>(other.end() - from);
                input.insert(place, from,
                             from + static_cast<std::ptrdiff_t>(below(std::min(rest, std::size_t{64}) + 1)));
            }
        }
    }

    std::mt19937_64 random_;
};

int replay(const fs::path& place) {
    const std::vector<Input> corpus = read_corpus(place);
    if (corpus.empty()) {
        fmt::print(stderr, "replay: {} is empty\n", place.string());
        return 1;
    }
    for (const Input& input : corpus) run(input);
    if (fs::is_regular_file(place)) return 0;
    Changes changes(tests::seed_of("fuzz " + place.filename().string(), 1));
    const int copies = tests::scaled(changed_copies);
    for (int i = 0; i < copies; ++i)
        run(changes.change(corpus[changes.below(corpus.size())], corpus[changes.below(corpus.size())]));
    fmt::print("{} inputs and {} changed copies\n", corpus.size(), copies);
    return 0;
}

}  // namespace
}  // namespace holdfast::fuzz

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: replay CORPUS|FILE\n");
        return 64;
    }
    for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL}) std::signal(signal, holdfast::fuzz::on_crash);
    return holdfast::fuzz::replay(argv[1]);
}
