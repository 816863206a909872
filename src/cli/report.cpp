#include "cli/report.hpp"

#include "cli/show.hpp"
#include "json/documents.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

namespace holdfast::cli {

std::string hint_for(const Error& error) {
    const std::string name = error.holder ? shell_quoted(error.holder->name.text()) : "NAME";
    switch (error.code) {
        case Errc::lock_conflict: return fmt::format("wait for it with --wait 2m, or look: holdfast status {}", name);
        case Errc::lock_expired: return fmt::format("stop the work, then take it again: holdfast acquire {}", name);
        case Errc::lock_not_held: return fmt::format("see who holds it and what happened: holdfast history {}", name);
        case Errc::fencing_mismatch:
            return fmt::format("stop: a newer holder is at work; see holdfast history {}", name);
        case Errc::outcome_unknown: return fmt::format("look before you repeat it: holdfast status {}", name);
        case Errc::store_unavailable: return "nothing was changed; try again, or find out more with: holdfast doctor";
        case Errc::name_invalid:
            return "a name is 1 to 255 bytes of UTF-8 without control characters, and without . or .. between slashes; "
                   "such as migrate/prod";
        case Errc::usage: return "see holdfast help";
        case Errc::denied: return "check who owns the store and the lock: holdfast doctor";
        case Errc::config: return "correct it, or name another file with --config";
        case Errc::store_unsafe:
        case Errc::format_unsupported:
            return "see what is wrong with it: holdfast doctor, or name another with --store";
        case Errc::audit_chain_broken:
        case Errc::record_corrupt: return "keep a copy of the store before anything else, then find out who changed it";
        default: return std::string(row_of(error.code).meaning);
    }
}

int exit_status(const Error& error, const Settings& settings) {
    const int usual = row_of(error.code).exit_status;
    if (error.code != Errc::lock_conflict) return usual;
    if (settings.text(opt::if_held) == "skip") return 0;
    const auto chosen = settings.number(opt::conflict_exit_code, 255);
    return chosen ? static_cast<int>(*chosen) : usual;
}

void report(const Error& error, Output& out, const std::optional<StoreInfo>& store) {
    const std::string hint = hint_for(error);
    if (out.style().json) {
        out.document(json::error(error, hint, store).done());
        return;
    }
    Output::warn(fmt::format("holdfast: {}: {}", row_of(error.code).name, printable(error.message)));
    out.note("  " + hint);
}

}  // namespace holdfast::cli
