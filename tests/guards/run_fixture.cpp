#include "guards/run_fixture.hpp"

#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <csignal>
#include <fstream>
#include <stdexcept>
#include <unistd.h>

namespace holdfast::tests {

char state_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    // Unlike an iterator, getline does not throw when the process goes while it is being read.
    std::getline(file, stat, '\0');
    const auto close = stat.rfind(')');
    return close == std::string::npos ? 'X' : stat[close + 2];
}

bool is_alive(pid_t pid) { return state_of(pid) != 'Z' && state_of(pid) != 'X'; }

RunFixture::RunFixture()
    : roster_folder_(box_.root / "roster"), store_folder_(box_.root / "store"), name_(lock("deploy/web")) {
    std::filesystem::create_directory(roster_folder_);
}

Args RunFixture::command(const Args& how, const Args& more_flags) const {
    Args args{"run", "--store", "file:" + (box_.root / "store").string(), "--ttl", "1500ms"};
    args.insert(args.end(), more_flags.begin(), more_flags.end());
    args.insert(args.end(), {name_.text(), "--", SUBJECT, roster_folder_.string()});
    args.insert(args.end(), how.begin(), how.end());
    return args;
}

namespace {

Args first_in_namespace() {
    Args args{"/usr/bin/unshare", "--pid", "--fork", "--mount-proc"};
    if (geteuid() != 0) args.insert(args.end(), {"--user", "--map-root-user"});
    return args;
}

}  // namespace

bool RunFixture::can_be_init() { return can_run(first_in_namespace()); }

Args RunFixture::as_init(const Args& how) const {
    Args args = first_in_namespace();
    const Args inner = command(how);
    args.push_back(std::string(HOLDFAST_BIN) + "/holdfast");
    args.insert(args.end(), inner.begin(), inner.end());
    return args;
}

Running RunFixture::start_and_await(const Args& how, std::size_t processes) {
    Running running = start(how);
    await_roster(processes);
    return running;
}

pid_t RunFixture::inner_of(const Running& running) {
    const std::string pid = std::to_string(running.pid());
    std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
    pid_t inner = 0;
    children >> inner;
    // A signal for 0 would end the whole test run.
    if (inner <= 0) throw std::runtime_error("there is no inner process any more");
    return inner;
}

std::set<pid_t> RunFixture::roster() const {
    std::set<pid_t> pids;
    for (const auto& entry : std::filesystem::directory_iterator(roster_folder_))
        if (entry.path().extension().empty()) pids.insert(std::stoi(entry.path().filename().string()));
    return pids;
}

void RunFixture::await_roster(std::size_t processes) const {
    ASSERT_TRUE(eventually([&] { return roster().size() >= processes; })) << "the child did not start";
}

bool RunFixture::anybody_alive() const {
    for (const pid_t pid : roster())
        if (is_alive(pid)) return true;
    return false;
}

Instant RunFixture::last_sign_of_life() const {
    std::int64_t last = 0;
    for (const pid_t pid : roster()) {
        std::int64_t time = 0;
        std::ifstream(roster_folder_ / std::to_string(pid)) >> time;
        last = std::max(last, time);
    }
    return Instant{std::chrono::milliseconds{last}};
}

LockStatus RunFixture::look() {
    const auto store = must(open_store("file:" + store_folder_.string()));
    return must(store->inspect(name_, soon()));
}

void RunFixture::take_store_away() {
    const auto away = box_.root / "store-taken-away";
    std::filesystem::rename(store_folder_, away);
    store_folder_ = away;
}

void RunFixture::expect_that_nobody_outlived_the_lease() {
    ASSERT_TRUE(eventually([&] { return !anybody_alive(); })) << "a process of the child was never ended";
    const LockStatus lock = look();
    // Free: it was released, or broken. Held: it has not run out yet, which is what we want to see.
    if (lock.state != LockState::expired) return;
    // This test may have looked too late, on a busy machine. The child's own word counts then.
    EXPECT_LT(last_sign_of_life(), lock.lease->expires_at);
}

std::size_t family_size(const std::string& how) {
    return how == "fork" || how == "daemon" || how == "stop" || how == "apart" ? 2 : 1;
}

}  // namespace holdfast::tests
