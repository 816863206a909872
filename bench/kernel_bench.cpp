// What the protocol itself costs, without a store: one decision, its bytes, its hash.

#include "kernel/codec.hpp"
#include "kernel/step.hpp"
#include "values/sha256.hpp"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

const Instant start{milliseconds{1'700'000'000'000}};

Acquire acquire_by(const Credentials& who) {
    Acquire request{.name = *LockName::parse("migrate/prod"), .as = who, .ttl = *Ttl::of(milliseconds{30'000})};
    request.holder = Holder{"web-3:ci:812:4711", "ci"};
    request.operation = "migrate up";
    request.reason = "release 41";
    return request;
}

kernel::State free_state() { return {kernel::blank(*LockName::parse("migrate/prod"))}; }

kernel::Decision grant_to(const Credentials& who) { return kernel::step(free_state(), acquire_by(who), start); }

kernel::State held_by(const Credentials& who) { return {*grant_to(who).record}; }

void acquire_a_free_lock(benchmark::State& run) {
    const auto state = free_state();
    const Request request = acquire_by(Credentials::random());
    for (auto _ : run) benchmark::DoNotOptimize(kernel::step(state, request, start));
}
BENCHMARK(acquire_a_free_lock);

void refuse_a_held_lock(benchmark::State& run) {
    const auto state = held_by(Credentials::random());
    const Request request = acquire_by(Credentials::random());
    for (auto _ : run) benchmark::DoNotOptimize(kernel::step(state, request, start + milliseconds{10}));
}
BENCHMARK(refuse_a_held_lock);

void renew(benchmark::State& run) {
    const auto who = Credentials::random();
    const auto state = held_by(who);
    const Request request = Renew{state.record.name, who, *Ttl::of(milliseconds{30'000})};
    for (auto _ : run) benchmark::DoNotOptimize(kernel::step(state, request, start + milliseconds{10}));
}
BENCHMARK(renew);

void encode_a_record(benchmark::State& run) {
    const auto record = held_by(Credentials::random()).record;
    for (auto _ : run) benchmark::DoNotOptimize(kernel::encode(record));
}
BENCHMARK(encode_a_record);

void decode_a_record(benchmark::State& run) {
    const auto bytes = kernel::encode(held_by(Credentials::random()).record);
    for (auto _ : run) benchmark::DoNotOptimize(kernel::decode_record(bytes));
}
BENCHMARK(decode_a_record);

void hash_an_event(benchmark::State& run) {
    const auto event = grant_to(Credentials::random()).events.front();
    for (auto _ : run) benchmark::DoNotOptimize(kernel::hash_of(event));
}
BENCHMARK(hash_an_event);

void sha256_of(benchmark::State& run) {
    const std::vector<std::uint8_t> bytes(static_cast<std::size_t>(run.range(0)), 0x5a);
    for (auto _ : run) benchmark::DoNotOptimize(sha256(bytes));
    run.SetBytesProcessed(run.iterations() * run.range(0));
}
BENCHMARK(sha256_of)->Arg(64)->Arg(4096);

}  // namespace
}  // namespace holdfast
