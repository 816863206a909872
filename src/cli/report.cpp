#include "cli/report.hpp"

#include "config/hints.hpp"
#include "config/store_urls.hpp"
#include "json/error.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::cli {

namespace {

/// The flags that a hint repeats, once for each store that is named: a command that looks takes one store.
std::vector<std::string> flags_for_each_store(const Settings& settings) {
    std::vector<std::string> stores{""};
    if (settings.on_command_line(opt::store)) {
        const auto urls = settings.texts(opt::store);
        if (std::ranges::any_of(urls, config::may_hold_secret)) return {""};
        stores.clear();
        for (const std::string& url : urls) stores.push_back(" -s " + config::shell_quoted(url));
    }
    if (settings.on_command_line(opt::config))
        for (std::string& flags : stores) flags += " --config " + config::shell_quoted(settings.text(opt::config));
    return stores;
}

}  // namespace

std::string repeated_flags(const Settings& settings) {
    return fmt::format("{}", fmt::join(flags_for_each_store(settings), ""));
}

std::string hint_for(const Error& error, const Settings* settings) {
    if (settings == nullptr) return config::hint_for(error);
    return config::hint_for(error, flags_for_each_store(*settings), settings->may_be_the_wrong_store());
}

std::string exit_for_eval(int status) { return fmt::format("case $- in *i*) (exit {0});; *) exit {0};; esac", status); }

int exit_status(const Error& error, const Settings& settings) {
    const int usual = row_of(error.code).exit_status;
    if (error.code != Errc::lock_conflict) return usual;
    if (settings.text(opt::if_held) == "skip") return 0;
    const auto chosen = settings.number(opt::conflict_exit_code, 255);
    return chosen ? static_cast<int>(*chosen) : usual;
}

void note_skipped(const Output& out, const Error& conflict) {
    if (out.tells_success()) out.note("holdfast: skipped: " + printable(conflict.message));
}

void report(const Error& error, Output& out, const std::optional<StoreInfo>& store, const Settings* settings) {
    const std::string hint = hint_for(error, settings);
    if (out.style().json) {
        out.document(json::error(error, hint, store).done());
        return;
    }
    Output::warn(fmt::format("holdfast: {}: {}", row_of(error.code).name, printable(error.message)));
    out.note("  " + printable(hint));
}

}  // namespace holdfast::cli
