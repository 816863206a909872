#include "config/hints.hpp"

#include "holdfast/lease.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::config {

std::string shell_quoted(std::string_view text) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("_-./:@,+=").find(c) != std::string_view::npos;
    };
    if (!text.empty() && std::ranges::all_of(text, plain)) return std::string(text);
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string name_and_flags(std::string_view name, const std::string& flags) {
    if (name.empty()) return flags;
    const std::string quoted = shell_quoted(name);
    return name.starts_with('-') ? fmt::format("{} -- {}", flags, quoted) : fmt::format(" {}{}", quoted, flags);
}

std::string hint_for(const Error& error, const std::vector<std::string>& flags, bool may_be_wrong_store) {
    if (!error.hint.empty()) return error.hint;
    const std::string name = error.holder ? error.holder->name.text() : "NAME";
    const auto for_each_store = [&](std::string_view command, std::string_view about) {
        std::vector<std::string> commands;
        for (const std::string& each : flags)
            commands.push_back(fmt::format("holdfast {}{}", command, name_and_flags(about, each)));
        return printable(fmt::format("{}", fmt::join(commands, "; ")));
    };
    const auto about_lock = [&](std::string_view command) { return for_each_store(command, name); };
    const auto doctor = [&] { return for_each_store("doctor", ""); };
    switch (error.code) {
        case Errc::timed_out:
        case Errc::cancelled:
        case Errc::lock_conflict: return "wait for it with --wait 2m, or look: " + about_lock("status");
        case Errc::lock_expired: return "stop the work, then take it again: " + about_lock("acquire");
        case Errc::lock_not_held:
            if (may_be_wrong_store)
                return "this is the built-in default store; if the lease is of another one, name it with --store";
            return "see who holds it and what happened: " + about_lock("history");
        case Errc::fencing_mismatch: return "stop: a newer holder is at work; see " + about_lock("history");
        case Errc::outcome_unknown: return "look before you repeat it: " + about_lock("status");
        case Errc::store_unavailable: return "nothing was changed; try again, or find out more with: " + doctor();
        case Errc::name_invalid:
            return "a name is 1 to 255 bytes of UTF-8 without control characters, and without . or .. between slashes; "
                   "such as migrate/prod";
        case Errc::usage: return "see holdfast help";
        case Errc::denied: return "check who owns the store and the lock: " + doctor();
        case Errc::config: return "correct it, or name another file with --config";
        case Errc::store_unsafe:
        case Errc::format_unsupported:
            return fmt::format("see what is wrong with it: {}, or name another with --store", doctor());
        case Errc::audit_chain_broken:
            return "keep a copy of the store before anything else, then find out who changed it";
        case Errc::record_corrupt:
            return "keep a copy of the store before anything else, then find out who changed it; this makes the lock "
                   "usable again: " +
                   about_lock("repair");
        default: return std::string(row_of(error.code).meaning);
    }
}

}  // namespace holdfast::config
