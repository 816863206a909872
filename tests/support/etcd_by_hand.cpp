#include "support/etcd_by_hand.hpp"

#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <curl/curl.h>
#include <memory>
#include <stdexcept>

namespace holdfast::tests {
namespace {

std::size_t append(char* data, std::size_t size, std::size_t count, void* text) {
    static_cast<std::string*>(text)->append(data, size * count);
    return size * count;
}

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(std::string_view bytes) {
    std::string out;
    unsigned bits = 0;
    unsigned count = 0;
    for (const char c : bytes) {
        bits = bits << 8U | static_cast<unsigned char>(c);
        for (count += 8; count >= 6; count -= 6) out += digits[bits >> (count - 6) & 63U];
    }
    if (count > 0) out += digits[bits << (6 - count) & 63U];
    while (out.size() % 4 != 0) out += '=';
    return out;
}

std::string decoded(std::string_view text) {
    std::string out;
    unsigned bits = 0;
    unsigned count = 0;
    for (const char c : text) {
        if (c == '=') break;
        bits = bits << 6U | static_cast<unsigned>(digits.find(c));
        count += 6;
        if (count < 8) continue;
        count -= 8;
        out += static_cast<char>(bits >> count & 0xffU);
    }
    return out;
}

/// All values of `"name":"…"`, in order. Enough for answers that contain no other quotes.
std::vector<std::string> fields(std::string_view json, std::string_view name) {
    const std::string mark = fmt::format("\"{}\":\"", name);
    std::vector<std::string> found;
    for (auto at = json.find(mark); at != std::string_view::npos; at = json.find(mark, at)) {
        at += mark.size();
        found.emplace_back(json.substr(at, json.find('"', at) - at));
    }
    return found;
}

std::string end_of(std::string prefix) {
    ++prefix.back();
    return prefix;
}

}  // namespace

std::string EtcdByHand::call(const std::string& path, const std::string& body) const {
    const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> request(curl_easy_init(), curl_easy_cleanup);
    std::string answer;
    curl_easy_setopt(request.get(), CURLOPT_URL, fmt::format("http://127.0.0.1:{}{}", port_, path).c_str());
    curl_easy_setopt(request.get(), CURLOPT_PROXY, "");
    curl_easy_setopt(request.get(), CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(request.get(), CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(request.get(), CURLOPT_WRITEFUNCTION, append);
    curl_easy_setopt(request.get(), CURLOPT_WRITEDATA, &answer);
    const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(
        token_.empty() ? nullptr : curl_slist_append(nullptr, ("Authorization: " + token_).c_str()),
        curl_slist_free_all);
    curl_easy_setopt(request.get(), CURLOPT_HTTPHEADER, headers.get());
    const CURLcode code = curl_easy_perform(request.get());
    if (code != CURLE_OK) throw std::runtime_error(fmt::format("{}: {}", path, curl_easy_strerror(code)));
    long status = 0;
    curl_easy_getinfo(request.get(), CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) throw std::runtime_error(fmt::format("{}: {} {}", path, status, answer));
    return answer;
}

void EtcdByHand::log_in(const std::string& user, const std::string& password) {
    const std::string answer =
        call("/v3/auth/authenticate", fmt::format(R"({{"name":"{}","password":"{}"}})", user, password));
    token_ = fields(answer, "token").at(0);
}

void EtcdByHand::require_password(const std::string& prefix) const {
    call("/v3/auth/role/add", R"({"name":"locks"})");
    call("/v3/auth/role/grant",
         fmt::format(R"({{"name":"locks","perm":{{"permType":"READWRITE","key":"{}","range_end":"{}"}}}})",
                     base64(prefix), base64(end_of(prefix))));
    call("/v3/auth/user/add", fmt::format(R"({{"name":"{}","password":"{}"}})", server_user_name, server_password));
    call("/v3/auth/user/grant", fmt::format(R"({{"user":"{}","role":"locks"}})", server_user_name));
    call("/v3/auth/user/add", R"({"name":"root","password":"root"})");
    call("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
    call("/v3/auth/enable", "{}");
}

std::vector<std::string> EtcdByHand::keys(const std::string& prefix) const {
    const std::string answer = call("/v3/kv/range", fmt::format(R"({{"key":"{}","range_end":"{}","keys_only":true}})",
                                                                base64(prefix), base64(end_of(prefix))));
    std::vector<std::string> found;
    for (const std::string& key : fields(answer, "key")) found.push_back(decoded(key));
    return found;
}

std::optional<std::string> EtcdByHand::get(const std::string& key) const {
    const std::string answer = call("/v3/kv/range", fmt::format(R"({{"key":"{}"}})", base64(key)));
    const auto values = fields(answer, "value");
    if (values.empty()) return std::nullopt;
    return decoded(values.front());
}

void EtcdByHand::put(const std::string& key, const std::string& value) const {
    call("/v3/kv/put", fmt::format(R"({{"key":"{}","value":"{}"}})", base64(key), base64(value)));
}

void EtcdByHand::remove_all(const std::string& prefix) const {
    call("/v3/kv/deleterange",
         fmt::format(R"({{"key":"{}","range_end":"{}"}})", base64(prefix), base64(end_of(prefix))));
}

void EtcdByHand::compact() const {
    const auto revision = fields(call("/v3/kv/range", R"({"key":"AA=="})"), "revision").at(0);
    call("/v3/kv/compaction", fmt::format(R"({{"revision":"{}","physical":true}})", revision));
}

bool EtcdByHand::leads() const {
    const std::string answer = call("/v3/maintenance/status", "{}");
    return fields(answer, "leader") == fields(answer, "member_id");
}

}  // namespace holdfast::tests
