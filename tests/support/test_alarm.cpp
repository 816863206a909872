// Ends a test program in which one test takes far too long, and says which: ctest would end it much later, without a
// word. Not a thread, because many tests fork.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace {

constexpr unsigned patience_s = 240;

/// Filled beforehand: a handler may do little more than write.
std::array<char, 512> last_words{};

void give_up(int) {
    const ssize_t written = write(STDERR_FILENO, last_words.data(), std::strlen(last_words.data()));
    std::_Exit(written < 0 ? 3 : 2);
}

class TestAlarm : public testing::EmptyTestEventListener {
    void OnTestStart(const testing::TestInfo& test) override {
        const std::string text =
            std::string("[  FAILED  ] ") + test.test_suite_name() + "." + test.name() + " did not end in time\n";
        last_words.fill('\0');
        std::ranges::copy_n(text.begin(), std::min(std::ssize(text), std::ssize(last_words) - 1), last_words.begin());
        std::signal(SIGALRM, give_up);
        // Longer runs are asked for like this, see support/run_settings.hpp.
        const char* const scale = std::getenv("HOLDFAST_TEST_SCALE");
        alarm(static_cast<unsigned>(patience_s * std::max(1.0, scale == nullptr ? 1.0 : std::atof(scale))));
    }
    void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
};

[[maybe_unused]] const bool installed = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new TestAlarm);
    return true;
}();

}  // namespace
