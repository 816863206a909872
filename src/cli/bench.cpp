// How quick is this store, here and now?
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/measure.hpp"
#include "cli/progress_line.hpp"
#include "cli/signals.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr Option clients{{"clients", Takes::one, "8"}, '\0', "N", "How many clients at once, beside the run with one."};
constexpr Option time{{"time", Takes::one, "3s"}, '\0', "D", "How long each of the three measurements takes."};
constexpr std::array bench_options{clients, time};
constexpr unsigned most_clients = 1000;

Row to_row(const std::string& what, const std::string& rate, const Spread& spread) {
    const auto ms = [](std::chrono::microseconds time_taken) {
        return fmt::format("{:.2f} ms", static_cast<double>(time_taken.count()) / 1000);
    };
    return {{what, rate, ms(spread.p50), ms(spread.p90), ms(spread.p99), ms(spread.longest)}, Colour::none};
}

Result<int> run_bench(Context& context) {
    const auto count = context.settings.number(clients, most_clients);
    if (!count) return std::unexpected(count.error());
    if (*count == 0) return fail(Errc::usage, "--clients is at least 1");
    const auto duration = context.settings.duration(time);
    if (!duration) return std::unexpected(duration.error());
    const StopOnSignal signals;
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());

    const ProgressLine line(context.out.style());
    const auto work = [&](std::string_view what, unsigned number) {
        return Workload{
            **store, context.clock, context.holder(), number, *duration, signals.token(), [&line, what](double part) {
                line.show(fmt::format("{}: {:3.0f} %", what, part * 100));
            }};
    };
    const auto many_clients = static_cast<unsigned>(*count);
    const auto one = measure_pairs(work("one client", 1));
    if (!one) return std::unexpected(one.error());
    const auto many = measure_pairs(work("many clients", many_clients));
    if (!many) return std::unexpected(many.error());
    const auto handover = measure_handover(work("hand-over", many_clients));
    if (!handover) return std::unexpected(handover.error());
    if (signals.signal() != 0) return signals.exit_status();

    const StoreInfo info = context.info().value_or(StoreInfo{});
    Output& out = context.out;
    if (out.style().json) {
        out.document(json::measured(info, {*one, *count, *many, *handover}).done());
        return 0;
    }
    out.line(fmt::format("{}: grade {}", printable(info.url), name_of(info.grade)));
    const auto rate = [](const Pairs& pairs) { return fmt::format("{} pairs/s", pairs.per_second); };
    const std::string of_many = fmt::format("{} clients, ", *count);
    out.table({"MEASURE", "RATE", "P50", "P90", "P99", "MAX"},
              {to_row("1 client, acquire", rate(*one), one->acquire), to_row("1 client, release", "", one->release),
               to_row(of_many + "acquire", rate(*many), many->acquire), to_row(of_many + "release", "", many->release),
               to_row(of_many + "hand-over", fmt::format("{} times", handover->count), *handover)});
    return 0;
}

}  // namespace

constinit const Command bench_command{"bench",
                                      "",
                                      "Measure this store on this machine",
                                      "Takes and releases locks named holdfast-bench/..., first with one client, then "
                                      "with several that each have a lock of "
                                      "their own, then with several that wait in line for the same one. Its locks and "
                                      "their audit events stay in the store.",
                                      {},
                                      bench_options,
                                      run_bench};

}  // namespace holdfast::cli
