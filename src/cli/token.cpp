// Who may do what through the daemon: the file of API tokens that `serve` reads.
#include "access/token_file.hpp"
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/show.hpp"
#include "config/hints.hpp"
#include "values/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace holdfast::cli {
namespace {

constexpr std::array one_user{Word{"USER"}};
constexpr std::array one_id{Word{"ID"}};
constexpr Option grant{{"grant", Takes::many, "", "", From::command_line},
                       '\0',
                       "ROLE[:AREA]",
                       "viewer, holder or admin, for all locks or those of an area; may be repeated."};
constexpr Option expires{
    {"expires", Takes::one, "", "", From::command_line}, '\0', "D", "It is refused after this time. Default: never."};
constexpr Option by_proxy{{"by-proxy", Takes::nothing, "", "", From::command_line},
                          '\0',
                          "",
                          "For a user whom the proxy of --trust-header names; no token is made."};
constexpr std::array create_options{grant, expires, by_proxy, opt::token_file};
constexpr std::array file_option{opt::token_file};

Result<std::string> token_file(const Context& context) {
    auto path = context.settings.text(opt::token_file);
    if (path.empty()) return fail(Errc::usage, "--token-file, or HOLDFAST_TOKEN_FILE, has to name the file of tokens");
    return path;
}

Result<access::NewToken> wanted_token(const Context& context) {
    access::NewToken wanted{.user = context.line.words.front(), .by_proxy = context.settings.on(by_proxy)};
    for (const std::string& text : context.settings.texts(grant)) {
        auto parsed = access::Grant::parse(text);
        if (!parsed) return fail(Errc::usage, "--grant: " + parsed.error().message);
        wanted.grants.push_back(std::move(*parsed));
    }
    if (wanted.grants.empty())
        return fail(Errc::usage,
                    "--grant has to say what the token is good for: --grant viewer, or --grant holder:team-a");
    if (context.settings.given(expires)) {
        const auto lasts = context.settings.duration(expires);
        if (!lasts) return std::unexpected(lasts.error());
        wanted.lasts = *lasts;
    }
    return wanted;
}

std::string grants_of(const access::TokenEntry& entry) {
    std::vector<std::string> texts;
    for (const access::Grant& each : entry.grants) texts.push_back(each.text());
    return printable(fmt::format("{}", fmt::join(texts, ", ")));
}

void print_created(Output& out, const access::CreatedToken& created) {
    if (out.style().json)
        return out.document(
            access::token_document(created.entry).set("token", json::Value::text_or_null(created.token)).done());
    if (out.style().quiet) {
        if (!created.token.empty()) out.line(created.token);
        return;
    }
    out.line(fmt::format("{}: {} for {}{}", created.entry.id, grants_of(created.entry), printable(created.entry.user),
                         created.entry.expires_at ? ", until " + to_rfc3339(*created.entry.expires_at) : ""));
    if (created.token.empty()) return;
    out.line("");
    out.line(created.token);
    out.line("");
    out.line("This is shown once: the file has only a hash of it.");
}

Result<int> run_create(Context& context) {
    const auto path = token_file(context);
    if (!path) return std::unexpected(path.error());
    const auto wanted = wanted_token(context);
    if (!wanted) return std::unexpected(wanted.error());
    const auto created = access::create_token(*path, *wanted, context.clock, context.soon());
    if (!created) return std::unexpected(created.error());
    print_created(context.out, *created);
    // A token that nobody saw must not stay valid.
    if (context.out.flush() != 0)
        if (auto gone = access::revoke_token(*path, created->entry.id, context.clock, context.soon()); !gone)
            return std::unexpected(gone.error());
    return 0;
}

Result<int> run_revoke(Context& context) {
    const auto path = token_file(context);
    if (!path) return std::unexpected(path.error());
    const auto gone = access::revoke_token(*path, context.line.words.front(), context.clock, context.soon());
    if (!gone) return std::unexpected(gone.error());
    if (context.out.style().json) {
        context.out.document(json::Object().set("revoked", access::token_document(*gone).done()).done());
    } else if (!context.out.style().quiet) {
        context.out.line(fmt::format("{} of {} is not valid any more", gone->id, printable(gone->user)));
    }
    return 0;
}

Result<int> run_list(Context& context) {
    const auto path = token_file(context);
    if (!path) return std::unexpected(path.error());
    const auto tokens = access::read_tokens(*path);
    if (!tokens) return std::unexpected(tokens.error());
    if (context.out.style().json) {
        std::vector<json::Value> items;
        for (const access::TokenEntry& entry : tokens->entries) items.push_back(access::token_document(entry).done());
        context.out.document(json::Object().set("tokens", json::Value::array(items)).done());
        return 0;
    }
    std::vector<Row> rows;
    for (const access::TokenEntry& entry : tokens->entries)
        rows.push_back({{entry.id, printable(entry.user), grants_of(entry), entry.hash ? "token" : "proxy",
                         entry.expires_at ? to_rfc3339(*entry.expires_at) : "never"},
                        entry.is_valid_at(context.clock.wall()) ? Colour::none : Colour::red});
    if (rows.empty()) {
        context.out.note("there are no tokens");
    } else {
        context.out.table({"ID", "USER", "GRANTS", "BY", "EXPIRES"}, rows);
    }
    return 0;
}

}  // namespace

constinit const Command token_create_command{
    "token create",
    "",
    "Make an API token for the daemon",
    "Adds an entry to the token file of the daemon and shows the token, once. A running daemon reads the file by "
    "itself.\n\nExample: holdfast token create ci --grant holder:deploy --grant viewer --expires 90d",
    one_user,
    create_options,
    run_create};

constinit const Command token_revoke_command{
    "token revoke",
    "",
    "Make an API token invalid",
    "Removes the entry with this id from the token file. A running daemon refuses its next request, and ends its "
    "event streams.",
    one_id,
    file_option,
    run_revoke};

constinit const Command token_list_command{
    "token list", "",      "Show who may do what through the daemon", "A line for each entry of the token file.", {},
    file_option,  run_list};

}  // namespace holdfast::cli
