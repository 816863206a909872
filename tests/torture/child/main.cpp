// What a supervisor of a torture run starts: lives a while under the lease that its environment names, has a child of
// its own that does the same, and writes down that they live.
// usage: torture_child HISTORY PROCESS LIFETIME_MS polite|deaf near|astray
#include "torture/client/recorder.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

std::string given(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr) throw std::runtime_error(fmt::format("{} is not set", name));
    return value;
}

void live(torture::Recorder& recorder, std::chrono::milliseconds time) {
    const auto say = [&](std::string_view what) {
        recorder.line(fmt::format(R"({{"e":"life","p":"{}","l":"{}","id":"{}","tok":{},"what":"{}","t":{}}})",
                                  recorder.process(), given("HOLDFAST_LOCK"), given("HOLDFAST_LOCK_ID"),
                                  given("HOLDFAST_TOKEN"), what, torture::now_ns()));
    };
    say("begin");
    for (const std::int64_t end = torture::now_ns() + std::chrono::nanoseconds(time).count();
         torture::now_ns() < end;) {
        std::this_thread::sleep_for(10ms);
        say("beat");
    }
    say("end");
}

}  // namespace

int main(int count, char** arguments) {
    try {
        if (count != 6) throw std::invalid_argument("usage: torture_child HISTORY PROCESS MS polite|deaf near|astray");
        torture::Recorder recorder(arguments[1], arguments[2]);
        const std::chrono::milliseconds time{std::stoll(arguments[3])};
        if (std::string_view(arguments[4]) == "deaf") std::signal(SIGTERM, SIG_IGN);
        const pid_t child = fork();
        if (child < 0) throw std::runtime_error("cannot fork");
        // Out of the group in which it was born: whoever ends the group alone misses it.
        if (child == 0 && std::string_view(arguments[5]) == "astray") setsid();
        live(recorder, time);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "torture_child: %s\n", error.what());
        return 1;
    }
}
