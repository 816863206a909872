#include "cli/report.hpp"

#include "cli/show.hpp"
#include "json/documents.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::cli {

std::string repeated_flags(const Settings& settings) {
    std::string flags;
    if (settings.on_command_line(opt::store)) {
        const auto urls = settings.texts(opt::store);
        if (std::ranges::any_of(urls, may_hold_secret)) return "";
        for (const std::string& url : urls) flags += " -s " + shell_quoted(url);
    }
    if (settings.on_command_line(opt::config)) flags += " --config " + shell_quoted(settings.text(opt::config));
    return flags;
}

std::string hint_for(const Error& error, const Settings* settings) {
    if (!error.hint.empty()) return error.hint;
    const std::string flags = settings == nullptr ? "" : repeated_flags(*settings);
    const std::string name =
        error.holder ? printable(shell_quoted(error.holder->name.text()) + flags) : "NAME" + printable(flags);
    switch (error.code) {
        case Errc::lock_conflict: return fmt::format("wait for it with --wait 2m, or look: holdfast status {}", name);
        case Errc::lock_expired: return fmt::format("stop the work, then take it again: holdfast acquire {}", name);
        case Errc::lock_not_held: return fmt::format("see who holds it and what happened: holdfast history {}", name);
        case Errc::fencing_mismatch:
            return fmt::format("stop: a newer holder is at work; see holdfast history {}", name);
        case Errc::outcome_unknown: return fmt::format("look before you repeat it: holdfast status {}", name);
        case Errc::store_unavailable:
            return "nothing was changed; try again, or find out more with: holdfast doctor" + flags;
        case Errc::name_invalid:
            return "a name is 1 to 255 bytes of UTF-8 without control characters, and without . or .. between slashes; "
                   "such as migrate/prod";
        case Errc::usage: return "see holdfast help";
        case Errc::denied: return "check who owns the store and the lock: holdfast doctor" + flags;
        case Errc::config: return "correct it, or name another file with --config";
        case Errc::store_unsafe:
        case Errc::format_unsupported:
            return fmt::format("see what is wrong with it: holdfast doctor{}, or name another with --store", flags);
        case Errc::audit_chain_broken:
        case Errc::record_corrupt: return "keep a copy of the store before anything else, then find out who changed it";
        default: return std::string(row_of(error.code).meaning);
    }
}

std::string exit_for_eval(int status) { return fmt::format("case $- in *i*) (exit {0});; *) exit {0};; esac", status); }

int exit_status(const Error& error, const Settings& settings) {
    const int usual = row_of(error.code).exit_status;
    if (error.code != Errc::lock_conflict) return usual;
    if (settings.text(opt::if_held) == "skip") return 0;
    const auto chosen = settings.number(opt::conflict_exit_code, 255);
    return chosen ? static_cast<int>(*chosen) : usual;
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
