#include "access/token_file.hpp"

#include "base/file_lock.hpp"
#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "json/fields.hpp"
#include "values/hex.hpp"
#include "values/random.hpp"
#include "values/sha256.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <span>

namespace holdfast::access {
namespace {

constexpr std::uint64_t newest_format = 1;
constexpr std::size_t most_bytes = std::size_t{4} << 20;
constexpr std::size_t most_users_bytes = 200;
constexpr std::chrono::days longest_life{3660};
constexpr std::string_view mark = "hft_";
constexpr std::size_t id_digits = 12;
constexpr std::size_t secret_digits = 64;

bool is_id(std::string_view text) {
    std::array<std::uint8_t, id_digits / 2> bytes{};
    return from_hex(text, bytes) && to_hex(bytes) == text;
}

std::optional<std::string_view> bad_user(std::string_view user) {
    if (user.empty()) return "is empty";
    if (user.size() > most_users_bytes) return "is longer than 200 bytes";
    if (!is_utf8(user) || has_control(user)) return "is not UTF-8 without control characters";
    // In a log it would look like another user, and it would differ from the name that a proxy sends.
    if (user.front() == ' ' || user.back() == ' ') return "begins or ends with a space";
    return std::nullopt;
}

Result<TokenEntry> read_entry(const json::Node& node, const std::string& where) {
    json::Fields in(node, where);
    TokenEntry entry{.id = in.text("id"), .user = in.text("user")};
    for (const json::Node& item : in.array("grants")) {
        const auto* const text = std::get_if<std::string>(&item.value);
        const auto grant = text != nullptr ? Grant::parse(*text) : Result<Grant>(fail(Errc::usage, "is not a text"));
        if (grant) {
            entry.grants.push_back(*grant);
        } else {
            in.refuse("grants", grant.error().message);
        }
    }
    // Said twice, so that an entry that lost its hash does not become a proxy's.
    const bool by_proxy = in.is_true("by_proxy");
    if (!by_proxy) entry.hash = KeyHash{in.digest("sha256")};
    entry.created_at = in.time("created_at");
    entry.expires_at = in.time_if("expires_at");
    // A field that this version does not know may take rights away.
    in.refuse_others();
    if (!is_id(entry.id)) in.refuse("id", "is not an id");
    if (const auto bad = bad_user(entry.user)) in.refuse("user", *bad);
    if (in.error()) return std::unexpected(*in.error());
    return entry;
}

/// One change of the file, which nobody else changes meanwhile.
class Editing {
public:
    [[nodiscard]] static Result<Editing> begin(const std::string& path, const Clock& clock, Deadline deadline) {
        const std::string guard_path = path + ".lock";
        base::Fd guard(open(guard_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
        if (!guard) return std::unexpected(base::os_error(errno, "open " + guard_path));
        const auto facts = base::facts_of(guard.get(), guard_path);
        if (!facts) return std::unexpected(facts.error());
        if (auto ours = base::expect_our_file(*facts, guard_path); !ours) return std::unexpected(ours.error());
        auto lock = base::FileLock::take(guard.get(), clock, deadline);
        if (!lock) return fail(lock.error().code, "another command is changing " + printable(path));
        return Editing(std::move(guard), std::move(*lock));
    }

private:
    Editing(base::Fd guard, base::FileLock lock) : guard_(std::move(guard)), lock_(std::move(lock)) {}
    base::Fd guard_;
    base::FileLock lock_;  ///< Ends before the descriptor.
};

/// All entries of the file; none if it does not exist.
Result<std::vector<TokenEntry>> entries_to_change(const std::string& path) {
    const auto facts = base::facts_of(path);
    if (!facts) return std::unexpected(facts.error());
    if (!*facts) return std::vector<TokenEntry>{};
    auto read = read_tokens(path);
    if (!read) return std::unexpected(read.error());
    return std::move(read->entries);
}

}  // namespace

std::string text_of_tokens(const std::vector<TokenEntry>& entries) {
    std::string text = fmt::format("{{\"format\":{},\"tokens\":[", newest_format);
    for (const TokenEntry& entry : entries) {
        json::Object object = token_document(entry);
        if (entry.hash) object.set("sha256", json::Value::text(to_hex(entry.hash->digest)));
        text += (&entry == entries.data() ? "\n" : ",\n") + object.done().written();
    }
    return text + "\n]}\n";
}

Result<std::vector<TokenEntry>> parse_tokens(std::string_view text) {
    const auto document = json::parse(text, {.bytes = most_bytes});
    if (!document) return std::unexpected(document.error());
    json::Fields in(*document);
    const std::uint64_t format = in.number("format");
    if (!in.error() && format > newest_format)
        return fail(Errc::format_unsupported, "it was written by a newer version of Holdfast");
    std::vector<TokenEntry> entries;
    for (const json::Node& item : in.array("tokens")) {
        auto entry = read_entry(item, fmt::format("tokens[{}]", entries.size()));
        if (!entry) return std::unexpected(entry.error());
        if (std::ranges::find(entries, entry->id, &TokenEntry::id) != entries.end())
            return fail(Errc::config, fmt::format("the id {} is there twice", entry->id));
        entries.push_back(std::move(*entry));
    }
    in.refuse_others();
    if (in.error()) return std::unexpected(*in.error());
    return entries;
}

ApiToken ApiToken::random() {
    std::array<std::uint8_t, id_digits / 2> id{};
    std::array<std::uint8_t, secret_digits / 2> secret{};
    fill_random(id);
    fill_random(secret);
    const std::string id_text = to_hex(id);
    return {id_text, fmt::format("{}{}_{}", mark, id_text, to_hex(secret))};
}

std::optional<ApiToken> ApiToken::parse(std::string_view text) {
    if (text.size() != mark.size() + id_digits + 1 + secret_digits || !text.starts_with(mark)) return std::nullopt;
    const std::string_view id = text.substr(mark.size(), id_digits);
    if (!is_id(id) || text[mark.size() + id_digits] != '_') return std::nullopt;
    return ApiToken{std::string(id), std::string(text)};
}

KeyHash ApiToken::hash() const { return {sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()})}; }

Result<ReadTokens> read_tokens(const std::string& path) {
    const auto file = base::read_private_file(path, most_bytes);
    if (!file) return std::unexpected(file.error());
    auto entries = parse_tokens(file->text);
    if (!entries)
        return fail(entries.error().code == Errc::format_unsupported ? Errc::format_unsupported : Errc::config,
                    fmt::format("the token file {} cannot be used: {}", printable(path), entries.error().message));
    return ReadTokens{std::move(*entries), file->version};
}

Result<CreatedToken> create_token(const std::string& path, const NewToken& wanted, const Clock& clock,
                                  Deadline deadline) {
    if (const auto bad = bad_user(wanted.user)) return fail(Errc::usage, fmt::format("the user's name {}", *bad));
    if (wanted.user == any_user && !wanted.by_proxy)
        return fail(Errc::usage, "the user * stands for everybody whom a proxy names; it cannot have a token");
    if (wanted.grants.empty()) return fail(Errc::usage, "a token without a grant would be good for nothing");
    if (wanted.lasts && (*wanted.lasts <= std::chrono::milliseconds{0} || *wanted.lasts > longest_life))
        return fail(Errc::usage, "a token lasts longer than nothing, and at most ten years unless it lasts for ever");
    const auto editing = Editing::begin(path, clock, deadline);
    if (!editing) return std::unexpected(editing.error());
    auto entries = entries_to_change(path);
    if (!entries) return std::unexpected(entries.error());

    ApiToken token = ApiToken::random();
    TokenEntry entry{.id = token.id, .user = wanted.user, .grants = wanted.grants, .created_at = clock.wall()};
    if (!wanted.by_proxy) entry.hash = token.hash();
    if (wanted.lasts) entry.expires_at = entry.created_at + *wanted.lasts;
    entries->push_back(entry);
    if (auto written = base::replace_private_file(path, text_of_tokens(*entries)); !written)
        return std::unexpected(written.error());
    return CreatedToken{std::move(entry), wanted.by_proxy ? "" : std::move(token.text)};
}

Result<TokenEntry> revoke_token(const std::string& path, std::string_view id, const Clock& clock, Deadline deadline) {
    const auto editing = Editing::begin(path, clock, deadline);
    if (!editing) return std::unexpected(editing.error());
    auto read = read_tokens(path);
    if (!read) return std::unexpected(read.error());
    const auto found = std::ranges::find(read->entries, id, &TokenEntry::id);
    if (found == read->entries.end())
        return fail(Errc::usage, "no token has this id; \"holdfast token list\" shows those that are there");
    TokenEntry gone = std::move(*found);
    read->entries.erase(found);
    if (auto written = base::replace_private_file(path, text_of_tokens(read->entries)); !written)
        return std::unexpected(written.error());
    return gone;
}

json::Object token_document(const TokenEntry& entry) {
    std::vector<std::string> grants;
    for (const Grant& grant : entry.grants) grants.push_back(grant.text());
    json::Object object;
    object.set("id", json::Value::text(entry.id))
        .set("user", json::Value::text(entry.user))
        .set("grants", json::Value::texts(grants))
        .set("by_proxy", json::Value::boolean(!entry.hash))
        .set("created_at", json::Value::time(entry.created_at))
        .set("expires_at", entry.expires_at ? json::Value::time(*entry.expires_at) : json::Value());
    return object;
}

}  // namespace holdfast::access
