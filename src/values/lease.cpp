#include "holdfast/lease.hpp"

#include "values/hex.hpp"
#include "values/random.hpp"
#include "values/sha256.hpp"
#include "values/small_file.hpp"
#include "values/text.hpp"
#include "values/users.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ranges>
#include <span>
#include <unistd.h>

namespace holdfast {
namespace {

std::array<std::uint8_t, 16> random_bytes() {
    std::array<std::uint8_t, 16> bytes{};
    fill_random(bytes);
    return bytes;
}

std::string host_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "localhost";
}

/// Field 22 of /proc/self/stat, the start time: it distinguishes this process from a later one with the same pid.
std::string start_time() {
    const std::string stat = small_file("/proc/self/stat").value_or("");
    // The second field is the program's name in parentheses and may itself hold spaces and parentheses.
    std::string_view rest = stat;
    rest.remove_prefix(std::min(stat.rfind(')') + 1, stat.size()));
    for (int field = 3; field <= 22; ++field) rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
    rest = rest.substr(0, rest.find(' '));
    return rest.empty() ? "0" : std::string(rest);
}

bool is_number(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

/// `.` and `..` between slashes: probably a path that was passed by mistake.
bool has_step_of_a_path(std::string_view text) {
    return std::ranges::any_of(text | std::views::split('/'), [](const auto& part) {
        const std::string_view step(part.begin(), part.end());
        return step == "." || step == "..";
    });
}

}  // namespace

Result<LockName> LockName::parse(std::string_view text) {
    const auto bad = [&](std::string_view why) {
        return fail(Errc::name_invalid,
                    fmt::format("\"{}\" cannot name a lock: {}", printable(text.substr(0, 300)), why));
    };
    if (text.empty()) return fail(Errc::name_invalid, "a lock's name cannot be empty; name it like migrate/prod");
    if (text.size() > max_bytes) return bad(fmt::format("it has {} bytes, and {} is the most", text.size(), max_bytes));
    if (has_control(text)) return bad("it contains a control character");
    if (!is_utf8(text)) return bad("it is not UTF-8");
    if (has_step_of_a_path(text)) return bad("\".\" and \"..\" lead nowhere here, since a name is not a path");
    return LockName(std::string(text));
}

template <class Tag>
Uuid<Tag> Uuid<Tag>::random() {
    auto bytes = random_bytes();
    bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x40);
    bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
    return Uuid(bytes);
}

template <class Tag>
Result<Uuid<Tag>> Uuid<Tag>::parse(std::string_view text) {
    Bytes bytes{};
    std::array<char, 32> digits{};
    const auto invalid = [] { return fail(Errc::usage, "not a UUID"); };
    if (text.size() != 36) return invalid();
    for (std::size_t i = 0, count = 0; i < text.size(); ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash != (text[i] == '-')) return invalid();
        if (!dash) digits[count++] = text[i];
    }
    if (!from_hex({digits.data(), digits.size()}, bytes)) return invalid();
    return Uuid(bytes);
}

template <class Tag>
std::string Uuid<Tag>::text() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text(36, '-');
    std::size_t at = 0;
    for (const std::uint8_t byte : bytes_) {
        if (at == 8 || at == 13 || at == 18 || at == 23) ++at;
        text[at++] = digits[byte >> 4];
        text[at++] = digits[byte & 15];
    }
    return text;
}

template class Uuid<LockIdTag>;
template class Uuid<StoreIdTag>;

bool KeyHash::operator==(const KeyHash& other) const {
    unsigned difference = 0;
    for (std::size_t i = 0; i < digest.size(); ++i)
        difference |= static_cast<unsigned>(digest[i]) ^ static_cast<unsigned>(other.digest[i]);
    return difference == 0;
}

LeaseKey LeaseKey::random() { return LeaseKey(random_bytes()); }
KeyHash LeaseKey::hash() const { return {sha256(bytes_)}; }
std::string LeaseKey::reveal() const { return to_hex(bytes_); }

Result<Credentials> Credentials::parse(std::string_view text) {
    const auto bad = fail(Errc::usage, "a lease is written <lock_id>.<lease_key>, as acquire prints it");
    const auto dot = text.find('.');
    if (dot == std::string_view::npos) return bad;
    const auto lock_id = LockId::parse(text.substr(0, dot));
    LeaseKey::Bytes key{};
    if (!lock_id || !from_hex(text.substr(dot + 1), key)) return bad;
    return Credentials{*lock_id, LeaseKey(key)};
}

Result<Ttl> Ttl::of(std::chrono::milliseconds time) {
    if (time < shortest || time > longest)
        return fail(Errc::usage, fmt::format("a lease of {} ms is outside the limits of {} and {}", time.count(),
                                             to_words(shortest), to_words(longest)));
    return Ttl(time);
}

Holder Holder::this_process() {
    // Reading it takes a dozen files, and every grant needs it. Kept for each thread, so that no mutex can be locked at
    // a fork.
    thread_local pid_t asked_by = -1;
    thread_local uid_t asked_as = 0;
    thread_local std::string known;
    if (asked_by != getpid() || asked_as != geteuid()) {
        known = fmt::format("{}:{}:{}:{}", host_name(), user_name(geteuid()), getpid(), start_time());
        asked_by = getpid();
        asked_as = geteuid();
    }
    return {known, ""};
}

std::string Holder::display() const {
    const auto start = text.rfind(':');
    if (start == std::string::npos || start == 0) return text;
    const auto pid = text.rfind(':', start - 1);
    if (pid == std::string::npos || pid == 0) return text;
    const auto name = text.rfind(':', pid - 1);
    if (name == std::string::npos || name == 0) return text;
    const std::string_view all = text;
    const auto pid_text = all.substr(pid + 1, start - pid - 1);
    if (!is_number(pid_text) || !is_number(all.substr(start + 1))) return text;
    return fmt::format("{}@{} (pid {})", all.substr(name + 1, pid - name - 1), all.substr(0, name), pid_text);
}

std::string_view name_of(LockState state) {
    switch (state) {
        case LockState::free: return "free";
        case LockState::held: return "held";
        case LockState::expired: return "expired";
        case LockState::unreadable: return "unreadable";
    }
    std::abort();
}

}  // namespace holdfast
