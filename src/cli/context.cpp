#include "cli/context.hpp"

#include "base/jitter.hpp"
#include "client/limits.hpp"
#include "client/repeat.hpp"
#include "holdfast/open.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace holdfast::cli {
namespace {

constexpr std::chrono::milliseconds between_tries{500};

std::string with_session(const std::string& url) {
    return url + (url.find('?') == std::string::npos ? "?" : "&") + "session=on";
}

/// A moment before the next try. False if the wait is over.
bool pause(const StoreWait& wait, const Error& why, const Clock& clock) {
    if (wait.stop.stop_requested() || wait.until.passed(clock)) return false;
    if (wait.blocked) wait.blocked(why);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any nobody;
    nobody.wait_for(lock, wait.stop,
                    std::min(wait.until.remaining(clock), base::random_between(between_tries / 2, between_tries)),
                    [] { return false; });
    return !wait.stop.stop_requested();
}

}  // namespace

Context::Context(CommandLine command_line, Settings all_settings, Output& output, const Clock& a_clock)
    : line(std::move(command_line)), settings(std::move(all_settings)), out(output), clock(a_clock) {}

Result<LockName> Context::name() const { return LockName::parse(line.words.empty() ? "" : line.words.front()); }

Holder Context::holder() const {
    return {settings.given(opt::holder) ? settings.text(opt::holder) : Holder::this_process().text,
            settings.text(opt::user)};
}

Result<Store*> Context::store() {
    if (!stores_.empty()) return stores_.front().get();
    const auto url = settings.store_url();
    if (!url) return std::unexpected(url.error());
    return open(*url);
}

Result<std::vector<Store*>> Context::stores() {
    if (stores_.empty()) {
        const auto urls = settings.store_urls();
        if (!urls) return std::unexpected(urls.error());
        for (const std::string& url : *urls)
            if (auto opened = open(url); !opened) return std::unexpected(opened.error());
    }
    std::vector<Store*> all;
    for (const auto& each : stores_) all.push_back(each.get());
    return all;
}

void Context::work_on(const Store& store) {
    const auto chosen = std::ranges::find(stores_, &store, &std::unique_ptr<Store>::get);
    if (chosen != stores_.end()) std::swap(stores_.front(), *chosen);
}

Result<Store*> Context::open(const std::string& url) {
    auto opened = open_store(settings.on(opt::session) ? with_session(url) : url, clock);
    while (!opened && opened.error().code == Errc::store_unavailable && wait_ && pause(*wait_, opened.error(), clock))
        opened = open_store(settings.on(opt::session) ? with_session(url) : url, clock);
    if (!opened) return std::unexpected(opened.error());
    stores_.push_back(std::move(*opened));
    if (out.style().verbose) {
        const StoreInfo info = stores_.back()->info();
        const std::string config =
            settings.config_path().empty() ? "no configuration file" : printable(settings.config_path());
        Output::warn(fmt::format("holdfast: store {}, grade {}, {}", printable(info.url), name_of(info.grade), config));
    }
    return stores_.back().get();
}

std::optional<StoreInfo> Context::info() const {
    if (stores_.empty()) return std::nullopt;
    return stores_.front()->info();
}

Deadline Context::soon() const { return Deadline::in(clock, patience); }

Reply Context::apply(const Request& request) {
    if (auto error = client::beyond_limits(request)) return std::unexpected(std::move(*error));
    const auto to = store();
    if (!to) return std::unexpected(to.error());
    return client::apply_or_repeat(**to, request, clock, patience);
}

Result<LockStatus> Context::inspect(const LockName& name) {
    const auto from = store();
    if (!from) return std::unexpected(from.error());
    return (*from)->inspect(name, soon());
}

}  // namespace holdfast::cli
