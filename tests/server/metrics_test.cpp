// The figures of the daemon: what is counted, that labels stay few, and that Prometheus can read them.
#include "server/figures/metrics.hpp"

#include "holdfast/open.hpp"
#include "server/figures/daemon_metrics.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sys/wait.h>

namespace holdfast::server {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using tests::by_alice;
using tests::by_bob;
using tests::lock;
using tests::must;

constexpr std::array bounds{1.0, 10.0};
constexpr std::array rows{MetricRow{"a_total", MetricRow::Kind::counter, "As.", {}},
                          MetricRow{"b", MetricRow::Kind::gauge, "Bs.", {}},
                          MetricRow{"c_seconds", MetricRow::Kind::histogram, "Cs.", bounds},
                          MetricRow{"holdfast_metrics_dropped_total", MetricRow::Kind::counter, "Dropped.", {}}};

TEST(TheFigures, AreWrittenAsPrometheusReadsThem) {
    Metrics metrics(rows);
    metrics.add("a_total");
    metrics.add("a_total", 2);
    metrics.add("a_total", 1, {{"x", "1"}, {"y", "q\"\\\n"}});
    metrics.set("b", 0.25);
    for (const double value : {0.5, 1.0, 2.0, 100.0}) metrics.observe("c_seconds", value);
    EXPECT_EQ(metrics.text(),
              "# HELP a_total As.\n# TYPE a_total counter\na_total 3\na_total{x=\"1\",y=\"q\\\"\\\\\\n\"} 1\n"
              "# HELP b Bs.\n# TYPE b gauge\nb 0.25\n"
              "# HELP c_seconds Cs.\n# TYPE c_seconds histogram\n"
              "c_seconds_bucket{le=\"1\"} 2\nc_seconds_bucket{le=\"10\"} 3\nc_seconds_bucket{le=\"+Inf\"} 4\n"
              "c_seconds_sum 103.5\nc_seconds_count 4\n"
              "# HELP holdfast_metrics_dropped_total Dropped.\n# TYPE holdfast_metrics_dropped_total counter\n"
              "holdfast_metrics_dropped_total 0\n");
}

TEST(TheFigures, StayFewHoweverManyLabelsThereAre) {
    Metrics metrics(rows);
    Metrics::Series series;
    for (std::size_t i = 0; i < Metrics::most_series + 5; ++i) {
        metrics.add("a_total", 1, {{"name", std::to_string(i)}});
        metrics.observe("c_seconds", 1, {{"name", std::to_string(i)}});
        series.emplace_back(std::to_string(i), 1);
    }
    metrics.replace("b", "name", series);
    metrics.add("a_total", 1, {{"name", "0"}});
    const std::string text = metrics.text();
    EXPECT_THAT(text, HasSubstr("a_total{name=\"0\"} 2\n"));
    EXPECT_THAT(text, Not(HasSubstr("name=\"1000\"")));
    EXPECT_THAT(text, HasSubstr("holdfast_metrics_dropped_total 15\n"));
}

TEST(TheTable, NamesEachFigureOnceAndEndsItWithItsUnit) {
    std::set<std::string_view> names;
    for (const MetricRow& row : metric_table()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_EQ(row.name.ends_with("_total"), row.kind == MetricRow::Kind::counter) << row.name;
        EXPECT_EQ(row.buckets.empty(), row.kind != MetricRow::Kind::histogram) << row.name;
        EXPECT_TRUE(row.help.ends_with('.')) << row.name;
    }
}

TEST(TheTable, IsOnThePageThatDescribesIt) {
    std::ifstream in(std::string(HOLDFAST_SOURCE_DIR) + "/docs/reference/metrics.md");
    const std::string page{std::istreambuf_iterator<char>(in), {}};
    std::size_t rows_of_page = 0;
    for (auto at = page.find("\n| `holdfast_"); at != std::string::npos; at = page.find("\n| `holdfast_", at + 1))
        ++rows_of_page;
    EXPECT_EQ(rows_of_page, metric_table().size());
    constexpr std::array kinds{"counter", "gauge", "histogram"};
    for (const MetricRow& row : metric_table())
        EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` | {} | {} |\n", row.name,
                                                kinds[static_cast<std::size_t>(row.kind)], row.help)));
}

/// A store whose every change is told to the figures, as a daemon does.
class DaemonFigures : public testing::Test {
protected:
    Reply send(const Request& request) {
        auto replies = store_->apply({&request, 1}, Deadline::never());
        metrics_.applied({&request, 1}, replies, 1500us);
        return replies ? std::move(replies->front()) : Reply(std::unexpected(replies.error()));
    }
    void read_events() {
        auto page = must(store_->events(cursor_, 1000, Deadline::never()));
        cursor_ = page.next;
        for (const AuditEvent& event : page.events) metrics_.read_event(event);
    }
    void look() {
        metrics_.look_begins();
        metrics_.looked_at(must(store_->list({}, Deadline::never())), clock_.wall() - 2s);
        metrics_.look_ends(store_->info(), 3ms);
    }
    [[nodiscard]] std::string text() const { return metrics_.text(); }

    ManualClock clock_;
    std::unique_ptr<Store> store_ = must(open_store("memory:", clock_));
    DaemonMetrics metrics_{"1.2.3", {.most = 2, .without = {"private/"}}};
    EventCursor cursor_{};
    const LockName name_ = lock("deploy");
};

TEST_F(DaemonFigures, CountAcquiresByTheirOutcome) {
    const Acquire alice = by_alice(name_);
    ASSERT_TRUE(send(alice));
    EXPECT_FALSE(send(by_bob(name_)));
    EXPECT_FALSE(send(tests::queued(by_bob(name_))));
    clock_.advance(1min);
    ASSERT_TRUE(send(by_bob(name_)));
    for (const char* line :
         {"holdfast_acquires_total{outcome=\"granted\"} 1\n", "holdfast_acquires_total{outcome=\"stolen\"} 1\n",
          "holdfast_acquires_total{outcome=\"queued\"} 1\n", "holdfast_acquires_total{outcome=\"E_LOCK_CONFLICT\"} 1\n",
          "holdfast_requests_total{op=\"acquire\",outcome=\"granted\"} 2\n", "holdfast_batch_size_count 4\n"})
        EXPECT_THAT(text(), HasSubstr(line));
}

TEST_F(DaemonFigures, CountACallThatFailedAsAWhole) {
    const Request request = by_alice(name_);
    metrics_.applied({&request, 1}, std::unexpected(Error{Errc::outcome_unknown, "lost"}), 1ms);
    EXPECT_THAT(text(), HasSubstr("holdfast_store_errors_total{code=\"E_OUTCOME_UNKNOWN\"} 1\n"));
    EXPECT_THAT(text(), HasSubstr("holdfast_acquires_total{outcome=\"E_OUTCOME_UNKNOWN\"} 1\n"));
}

TEST_F(DaemonFigures, CountLossesByTheirCauseAndEachOnce) {
    const Acquire alice = by_alice(name_, 30s);
    ASSERT_TRUE(send(alice));
    clock_.advance(1min);
    const Acquire bob = by_bob(name_, 30s);
    ASSERT_TRUE(send(bob));  // Stolen, unannounced.
    clock_.advance(1min);
    ASSERT_TRUE(send(Expire{name_, bob.as.lock_id}));
    const Acquire carol = tests::by_carol(name_, 30s);
    ASSERT_TRUE(send(carol));  // After an announcement.
    ASSERT_TRUE(send(Break{name_, carol.as.lock_id, "root", "stuck"}));
    ASSERT_TRUE(send(ReportFenced{.name = name_, .token = FencingToken{1}, .holder = {"x", ""}, .resource = "db"}));
    read_events();
    for (const char* line :
         {"holdfast_losses_total{cause=\"expired\"} 2\n", "holdfast_losses_total{cause=\"broken\"} 1\n",
          "holdfast_losses_total{cause=\"overridden\"} 0\n", "holdfast_steals_total 2\n", "holdfast_breaks_total 1\n",
          "holdfast_fenced_writes_total 1\n", "holdfast_events_total{event=\"stolen\"} 2\n"})
        EXPECT_THAT(text(), HasSubstr(line));
}

TEST_F(DaemonFigures, CountOverridesAndThoseThatBrokeGlass) {
    ASSERT_TRUE(send(by_alice(name_)));
    const Ask ask{.name = name_,
                  .as = Credentials::random(),
                  .holder = {"bob", "bob"},
                  .ttl = tests::lasting(30s),
                  .valid_for = tests::lasting(30s)};
    ASSERT_TRUE(send(ask));
    ASSERT_TRUE(send(Answer{.name = name_,
                            .ask_id = ask.as.lock_id,
                            .verdict = Verdict::approve,
                            .actor = "bob",
                            .reason = "down",
                            .breaks_glass = true}));
    read_events();
    EXPECT_THAT(text(), HasSubstr("holdfast_break_glass_total 1\n"));
    EXPECT_THAT(text(), HasSubstr("holdfast_losses_total{cause=\"overridden\"} 1\n"));
}

TEST_F(DaemonFigures, MeasureHowLongALockWasHeld) {
    const Acquire alice = by_alice(name_, 1h);
    ASSERT_TRUE(send(alice));
    clock_.advance(2min);
    ASSERT_TRUE(send(tests::release(alice)));
    read_events();
    EXPECT_THAT(text(), HasSubstr("holdfast_hold_seconds_bucket{end=\"released\",le=\"60\"} 0\n"));
    EXPECT_THAT(text(), HasSubstr("holdfast_hold_seconds_bucket{end=\"released\",le=\"300\"} 1\n"));
    EXPECT_THAT(text(), HasSubstr("holdfast_hold_seconds_sum{end=\"released\"} 120\n"));
}

TEST_F(DaemonFigures, ShowTheLocksThatAreHeldLongestAndNoneThatIsLeftOut) {
    ASSERT_TRUE(send(by_alice(lock("private/key"), 1h)));
    for (const char* name : {"first", "second", "third"}) {
        clock_.advance(1min);
        ASSERT_TRUE(send(by_alice(lock(name), 1h)));
    }
    look();
    EXPECT_THAT(text(), HasSubstr("holdfast_lock_held_seconds{lock=\"first\"} 120\n"));
    EXPECT_THAT(text(), HasSubstr("holdfast_lock_held_seconds{lock=\"second\"} 60\n"));
    EXPECT_THAT(text(), HasSubstr("holdfast_lock_renew_margin_seconds{lock=\"first\"} 3480\n"));
    EXPECT_THAT(text(), Not(HasSubstr("third")));
    EXPECT_THAT(text(), Not(HasSubstr("private")));
    EXPECT_THAT(text(), HasSubstr("holdfast_locks{state=\"held\"} 4\n"));
    EXPECT_THAT(text(), HasSubstr("holdfast_store_clock_difference_seconds 2\n"));
    EXPECT_THAT(text(), HasSubstr("holdfast_store_grade{grade=\"B\"} 1\n"));
    ASSERT_TRUE(
        send(Break{lock("first"), must(store_->inspect(lock("first"), Deadline::never())).lease->lock_id, "x"}));
    look();
    EXPECT_THAT(text(), Not(HasSubstr("\"first\""))) << "a lock that is free again is gone";
}

TEST_F(DaemonFigures, ShowAWaiterThatStarvesUntilTheLockMoves) {
    const Acquire alice = by_alice(name_, 1h);
    ASSERT_TRUE(send(alice));
    EXPECT_FALSE(send(tests::queued(by_bob(name_), 1h)));
    EXPECT_FALSE(send(tests::queued(tests::by_carol(name_), 1h)));
    look();
    clock_.advance(10min);
    look();
    EXPECT_THAT(text(), HasSubstr("holdfast_longest_queue_seconds 600\n"));
    EXPECT_THAT(text(), HasSubstr("holdfast_waiters 2\n"));
    ASSERT_TRUE(send(tests::release(alice)));
    look();
    EXPECT_THAT(text(), HasSubstr("holdfast_longest_queue_seconds 0\n")) << "it went to the first of them";
}

TEST_F(DaemonFigures, ShowTheLeastMarginOfThoseThatRenew) {
    const Acquire alice = by_alice(name_, 100s);
    ASSERT_TRUE(send(alice));
    ASSERT_TRUE(send(by_bob(lock("once"), 100s)));
    clock_.advance(20s);
    ASSERT_TRUE(send(tests::renewal(alice)));
    const double ttl = static_cast<double>(tests::renewal(alice).ttl.time().count()) / 1000;
    clock_.advance(5s);
    look();
    EXPECT_THAT(text(), HasSubstr(fmt::format("holdfast_least_renew_margin_ratio {}\n", (ttl - 5) / ttl)));
}

TEST_F(DaemonFigures, SayWhenTheStoreCannotBeReached) {
    look();
    EXPECT_THAT(text(), HasSubstr("holdfast_store_up 1\n"));
    metrics_.look_failed({Errc::store_unavailable, "away"});
    EXPECT_THAT(text(), HasSubstr("holdfast_store_up 0\n"));
}

int run(const std::string& command) {
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(DaemonFigures, PleasePromtool) {
    if (run("command -v promtool >/dev/null") != 0) GTEST_SKIP() << tests::not_here << "promtool is not installed";
    ASSERT_TRUE(send(by_alice(lock("we\"ird \xc3\xbc\\"), 1h)));
    metrics_.answered("GET", "/v1/lock", 200, 3ms);
    metrics_.answered("POST", "/v1/acquire", 200, 3ms);
    read_events();
    look();
    const tests::TempFolder folder;
    const std::string path = (folder.path() / "metrics").string();
    std::ofstream(path) << text();
    EXPECT_EQ(run("promtool check metrics <" + path + " >&2"), 0) << text();
}

TEST(AlertRules, PleasePromtool) {
    if (run("command -v promtool >/dev/null") != 0) GTEST_SKIP() << tests::not_here << "promtool is not installed";
    const std::string folder = std::string(HOLDFAST_SOURCE_DIR) + "/contrib/prometheus/";
    EXPECT_EQ(run("promtool check rules " + folder + "holdfast.rules.yml >&2"), 0);
    EXPECT_EQ(run("promtool test rules " + folder + "holdfast.rules.test.yml >&2"), 0);
}

TEST(AlertRules, NameOnlyFiguresThatExist) {
    std::ifstream in(std::string(HOLDFAST_SOURCE_DIR) + "/contrib/prometheus/holdfast.rules.yml");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::size_t found = 0;
    for (auto at = text.find("holdfast_"); at != std::string::npos; at = text.find("holdfast_", at + 1)) {
        std::string name = text.substr(at, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at) - at);
        if (name.ends_with("_bucket")) name.resize(name.size() - 7);
        EXPECT_NE(std::ranges::find(metric_table(), name, &MetricRow::name), metric_table().end()) << name;
        ++found;
    }
    EXPECT_GT(found, 10U);
}

}  // namespace
}  // namespace holdfast::server
