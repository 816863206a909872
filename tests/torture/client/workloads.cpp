#include "torture/client/workloads.hpp"

#include "torture/client/supervised.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <thread>

namespace torture {
namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// How many locks each workload spreads over. Few, so that clients meet.
const std::map<std::string, int>& spread() {
    static const std::map<std::string, int> locks{{"single", 1},  {"many", 8},     {"queue", 2}, {"handed", 2},
                                                  {"several", 5}, {"register", 4}, {"run", 2}};
    return locks;
}

constexpr auto patience = 3s;
constexpr auto last_patience = 60s;

LockName lock(const std::string& name) { return *LockName::parse(name); }
Deadline soon() { return Deadline::in(host_clock(), 2s); }

}  // namespace

std::vector<std::string> all_workloads() {
    std::vector<std::string> names;
    for (const auto& [name, locks] : spread()) names.push_back(name);
    return names;
}

std::vector<std::string> locks_of(const std::string& workload) {
    std::vector<std::string> names;
    for (int i = 0; i < spread().at(workload); ++i) names.push_back(fmt::format("{}/{}", workload, i));
    return names;
}

Worker::Worker(Store& store, Recorder& recorder, const WorkerSettings& settings)
    : store_(store, recorder), recorder_(recorder), settings_(settings), random_(settings.seed) {}

bool Worker::turn() {
    reached_ = true;
    const auto& workloads = settings_.workloads;
    const bool guarded_first = std::ranges::find(workloads, "register") != workloads.end() && one_in(2);
    const std::string workload = guarded_first ? "register" : workloads[below(workloads.size())];
    if (workload == "single") single();
    if (workload == "many") many();
    if (workload == "queue") queue();
    if (workload == "handed") handed();
    if (workload == "several") several();
    if (workload == "register") guarded();
    if (workload == "run") run();
    return reached_;
}

void Worker::last_turns() {
    std::vector<std::string> names;
    for (const std::string& workload : settings_.workloads)
        std::ranges::move(locks_of(workload), std::back_inserter(names));
    for (const std::string& name : names) {
        const std::uint64_t number = recorder_.begin("turn", name, "");
        const Deadline deadline = Deadline::in(host_clock(), last_patience);
        auto held = hold(store_, lock(name), options(last_patience));
        // Whatever goes wrong on the way, a client that keeps asking must get the lock.
        while (!held && !deadline.passed(host_clock()))
            held = hold(store_, lock(name), options(deadline.remaining(host_clock())));
        if (!held) {
            recorder_.end(number, result_of(held.error()), because(held.error()));
            continue;
        }
        trusts(*held);
        recorder_.end(number, "ok");
        if (const auto released = held->release(); !released) note(released.error());
    }
}

HoldOptions Worker::options(milliseconds wait) const {
    HoldOptions options;
    options.holder.text = recorder_.process();
    options.ttl = settings_.ttl;
    options.wait = wait;
    // What goes wrong is in the history; without an observer it would go to the terminal.
    options.observer = [](const HoldEvent&) {};
    return options;
}

void Worker::note(const Error& error) {
    if (error.code == Errc::store_unavailable || error.code == Errc::outcome_unknown) reached_ = false;
}

bool Worker::trusts(const std::string& name, const LockId& id, FencingToken token, std::int64_t until) {
    const std::int64_t now = now_ns();
    if (now >= until) return false;
    recorder_.believe(name, id, token, now, until);
    return true;
}

bool Worker::trusts(const Hold& hold) {
    const std::int64_t until = to_ns(hold.deadline());
    if (!hold.loss() && trusts(hold.name().text(), hold.credentials().lock_id, hold.token(), until)) return true;
    recorder_.lost(hold.name().text(), hold.credentials().lock_id, hold.token());
    return false;
}

void Worker::stay(const Hold& hold, milliseconds time) {
    const Deadline end = Deadline::in(host_clock(), time);
    while (trusts(hold) && !end.passed(host_clock()))
        std::this_thread::sleep_for(std::min(end.remaining(host_clock()), 20ms));
}

void Worker::hold_for_a_while(const std::string& name, milliseconds wait) {
    auto held = hold(store_, lock(name), options(wait));
    if (!held) return note(held.error());
    // Sometimes long enough to need renewals.
    const auto longest = one_in(10) ? 1.5 * settings_.ttl.time() : milliseconds{15};
    stay(*held, milliseconds{below(static_cast<std::uint64_t>(longest.count()))});
    if (one_in(20)) return held->abandon();
    if (const auto released = held->release(); !released) note(released.error());
}

std::string Worker::any(const std::string& workload) {
    const std::vector<std::string> locks = locks_of(workload);
    return locks[below(locks.size())];
}

void Worker::single() { hold_for_a_while(any("single"), patience); }

void Worker::many() { hold_for_a_while(any("many"), 0ms); }

void Worker::queue() { hold_for_a_while(any("queue"), milliseconds{10 + below(400)}); }

void Worker::several() {
    std::vector<std::string> names = locks_of("several");
    std::ranges::shuffle(names, random_);
    names.resize(2 + below(3));
    std::vector<HoldTarget> targets;
    for (const std::string& name : names) targets.push_back({&store_, lock(name), options(patience)});
    auto held = hold_all(std::move(targets));
    if (!held) return note(held.error());
    for (const Hold& one : held->holds()) stay(one, milliseconds{below(5)});
    if (const auto released = held->release(); !released) note(released.error());
}

void Worker::handed() {
    const std::string name = any("handed");
    if (one_in(5)) return break_somebodys(name);
    Acquire request{.name = lock(name), .as = Credentials::random(), .ttl = settings_.ttl};
    request.holder.text = recorder_.process();
    const std::int64_t sent_at = now_ns();
    const Reply granted = store_.apply_one(request, soon());
    if (!granted) return note(granted.error());
    // A quarter of the time is this client's own margin.
    const std::int64_t until = sent_at + settings_.ttl.time().count() * 750'000;
    if (!trusts(name, request.as.lock_id, granted->lock.token, until)) return;

    Transfer transfer{.name = lock(name), .as = request.as, .to_as = Credentials::random()};
    transfer.to.text = recorder_.process() + ", too";
    Reply moved = store_.apply_one(transfer, soon());
    if (!moved && moved.error().code == Errc::outcome_unknown) moved = store_.apply_one(transfer, soon());
    if (!moved) return note(moved.error());
    // A transfer prolongs nothing.
    if (!trusts(name, transfer.to_as.lock_id, moved->lock.token, until)) return;
    std::this_thread::sleep_for(milliseconds{below(15)});
    if (const Reply released = store_.apply_one(Release{lock(name), transfer.to_as}, soon()); !released)
        note(released.error());
}

void Worker::break_somebodys(const std::string& name) {
    const auto seen = store_.inspect(lock(name), soon());
    if (!seen) return note(seen.error());
    if (!seen->lease) return;
    const Break request{lock(name), seen->lease->lock_id, recorder_.process(), "torture"};
    if (const Reply broken = store_.apply_one(request, soon()); !broken) note(broken.error());
}

/// `holdfast run`, whose command says for itself that it lives. It finds the store in the environment.
void Worker::run() {
    const std::string name = any("run");
    const auto ms = [](std::uint64_t count) { return fmt::format("{}ms", count); };
    const auto ttl = static_cast<std::uint64_t>(settings_.ttl.time().count());
    const std::vector<std::string> command{program("holdfast"),
                                           "run",
                                           name,
                                           "--ttl",
                                           ms(ttl),
                                           "--wait",
                                           ms(one_in(2) ? 0 : below(2000)),
                                           "--holder",
                                           recorder_.process(),
                                           "--",
                                           program("torture_child"),
                                           (settings_.folder / "history").string(),
                                           recorder_.process(),
                                           std::to_string(ttl + below(2 * ttl)),
                                           one_in(2) ? "deaf" : "polite",
                                           std::array{"near", "astray", "bare"}[below(3)]};
    const std::uint64_t number = recorder_.begin("supervise", name, "");
    const std::optional<int> status = run_and_wait(command);
    std::string why;
    for (const Errc code : {Errc::lock_conflict, Errc::lock_expired, Errc::store_unavailable, Errc::outcome_unknown})
        if (status == row_of(code).exit_status) why = because(Error{code, ""});
    recorder_.end(number, !status ? "unknown" : *status == 0 ? "ok" : "refused", why);
    if (status == row_of(Errc::store_unavailable).exit_status) reached_ = false;
}

GuardedRegister& Worker::register_of(const std::string& name) {
    std::string file = name;
    std::ranges::replace(file, '/', '-');
    return registers_.try_emplace(name, (settings_.folder / file).string(), name, settings_.guard).first->second;
}

void Worker::guarded() {
    const std::string name = any("register");
    if (one_in(60)) return force(name);
    // Not in the queue, where the place of a killed client keeps all others out for seconds: the fence has more to do
    // where holders follow each other quickly.
    auto held = hold(store_, lock(name), options(0ms));
    for (int attempt = 0; attempt < 30 && !held && held.error().code == Errc::lock_conflict; ++attempt) {
        std::this_thread::sleep_for(milliseconds{20 + below(20)});
        held = hold(store_, lock(name), options(0ms));
    }
    if (!held) return note(held.error());
    if (trusts(*held)) change_register(*held);
    if (const auto released = held->release(); !released) note(released.error());
}

/// Reads, thinks, writes. It looks at its lease before it reads and not again, as programs do: what happens in between
/// is for the fence to catch.
void Worker::change_register(const Hold& hold) {
    const std::string& name = hold.name().text();
    const LockId id = hold.credentials().lock_id;
    const FencingToken token = hold.token();
    GuardedRegister& target = register_of(name);
    const std::uint64_t sealing = recorder_.begin("seal", name, under(id, token));
    const bool sealed = target.seal(token, id);
    recorder_.end(sealing, sealed ? "ok" : "refused");
    const std::uint64_t writes = 1 + below(6);
    for (std::uint64_t number = 1; sealed && number <= writes && trusts(hold); ++number) {
        const std::uint64_t reading = recorder_.begin("read", name, under(id, token));
        const std::uint64_t base = target.read();
        recorder_.end(reading, "ok", fmt::format(R"(,"v":{})", base));
        std::this_thread::sleep_for(milliseconds{below(25)});
        const std::uint64_t writing =
            recorder_.begin("write", name, under(id, token) + fmt::format(R"(,"n":{},"base":{})", number, base));
        const auto version = target.write(token, id, number, base);
        recorder_.end(writing, version ? "ok" : "refused", fmt::format(R"(,"v":{})", version.value_or(0)));
        if (!version) return;
    }
}

/// Breaks a lease and shows the resource the token that this has spent, so that the victim is locked out at once.
void Worker::force(const std::string& name) {
    const auto seen = store_.inspect(lock(name), soon());
    if (!seen) return note(seen.error());
    if (!seen->lease) return;
    const std::uint64_t number = recorder_.begin("force", name, under(seen->lease->lock_id, seen->lease->token));
    const Reply broken =
        store_.apply_one(Break{lock(name), seen->lease->lock_id, recorder_.process(), "torture"}, soon());
    if (!broken) {
        recorder_.end(number, result_of(broken.error()), because(broken.error()));
        return note(broken.error());
    }
    // Refused means that somebody newer has sealed already, which locks the victim out as well.
    static_cast<void>(register_of(name).seal(broken->lock.token, LockId::random()));
    recorder_.end(number, "ok");
}

}  // namespace torture
