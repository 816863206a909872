// What a supervisor of a torture run starts: lives a while under the lease that its environment names, has a child of
// its own that does the same, and writes down that they live.
// usage: torture_child HISTORY PROCESS LIFETIME_MS polite|deaf near|astray|bare
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
#include <vector>

namespace {

using namespace std::chrono_literals;

std::string given(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr) throw std::runtime_error(fmt::format("{} is not set", name));
    return value;
}

struct Lease {
    std::string lock = given("HOLDFAST_LOCK");
    std::string id = given("HOLDFAST_LOCK_ID");
    std::string token = given("HOLDFAST_TOKEN");
};

void live(torture::Recorder& recorder, std::chrono::milliseconds time, const Lease& lease) {
    const auto say = [&](std::string_view what) {
        recorder.line(fmt::format(R"({{"e":"life","p":"{}","l":"{}","id":"{}","tok":{},"what":"{}","t":{}}})",
                                  recorder.process(), lease.lock, lease.id, lease.token, what, torture::now_ns()));
    };
    say("begin");
    for (const std::int64_t end = torture::now_ns() + std::chrono::nanoseconds(time).count();
         torture::now_ns() < end;) {
        std::this_thread::sleep_for(10ms);
        say("beat");
    }
    say("end");
}

/// Becomes another program without an environment, as `setsid env -i` does. Nothing of ours is left to know it by.
[[noreturn]] void live_bare(char** arguments, const Lease& lease) {
    std::vector<std::string> words{arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                                   "alone",      lease.lock,   lease.id,     lease.token};
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    char* nothing = nullptr;
    execve("/proc/self/exe", pointers.data(), &nothing);
    throw std::runtime_error("cannot become another program");
}

}  // namespace

int main(int count, char** arguments) {
    try {
        const bool is_alone = count == 9 && std::string_view(arguments[5]) == "alone";
        if (count != 6 && !is_alone)
            throw std::invalid_argument("usage: torture_child HISTORY PROCESS MS polite|deaf near|astray|bare");
        torture::Recorder recorder(arguments[1], arguments[2]);
        const std::chrono::milliseconds time{std::stoll(arguments[3])};
        const std::string_view place = arguments[5];
        if (std::string_view(arguments[4]) == "deaf") std::signal(SIGTERM, SIG_IGN);
        const Lease lease = is_alone ? Lease{arguments[6], arguments[7], arguments[8]} : Lease{};
        if (!is_alone) {
            const pid_t child = fork();
            if (child < 0) throw std::runtime_error("cannot fork");
            // Out of the group in which it was started: a supervisor that ends only the group misses it.
            if (child == 0 && place != "near") setsid();
            if (child == 0 && place == "bare") live_bare(arguments, lease);
        }
        live(recorder, time, lease);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "torture_child: %s\n", error.what());
        return 1;
    }
}
