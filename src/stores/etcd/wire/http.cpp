#include "stores/etcd/wire/http.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <strings.h>

namespace holdfast::stores::etcd {
namespace {

std::size_t ignore_body(char* /*data*/, std::size_t size, std::size_t count, void* /*into*/) { return size * count; }

std::size_t keep_date(char* data, std::size_t size, std::size_t count, void* into) {
    constexpr std::string_view name = "date:";
    const std::string line(data, size * count);
    if (line.size() > name.size() && strncasecmp(line.c_str(), name.data(), name.size()) == 0) {
        const time_t seconds = curl_getdate(line.c_str() + name.size(), nullptr);
        if (seconds > 0) *static_cast<std::optional<Instant>*>(into) = Instant{std::chrono::seconds{seconds}};
    }
    return size * count;
}

}  // namespace

CurlHandle make_handle(const std::string& ca_file) {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    CurlHandle handle(ready == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
    if (!handle) throw std::runtime_error("libcurl cannot be used");
    CURL* curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    // A proxy from the environment would see the password and answer with a clock of its own.
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (!ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file.c_str());
    return handle;
}

std::string words_of(CURLcode code, const char* details) {
    return details != nullptr && *details != 0 ? details : curl_easy_strerror(code);
}

Http::Http(const std::string& ca_file) : handle_(make_handle(ca_file)) {
    curl_easy_setopt(handle_.get(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(handle_.get(), CURLOPT_WRITEFUNCTION, ignore_body);
    curl_easy_setopt(handle_.get(), CURLOPT_HEADERFUNCTION, keep_date);
}

std::expected<Instant, HttpFailure> Http::date(const std::string& url, std::chrono::milliseconds timeout) {
    CURL* curl = handle_.get();
    std::optional<Instant> date;
    std::array<char, CURL_ERROR_SIZE> details{};
    // This path needs no login, and no other node.
    curl_easy_setopt(curl, CURLOPT_URL, (url + "/version").c_str());
    // Zero would mean for ever.
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(timeout.count(), 1)));
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &date);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details.data());
    const CURLcode code = curl_easy_perform(curl);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
    long bytes_sent = 0;
    curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &bytes_sent);
    if (code != CURLE_OK) return std::unexpected(HttpFailure{bytes_sent > 0, words_of(code, details.data())});
    if (!date) return std::unexpected(HttpFailure{true, "its answer does not say what time it is (it has no Date)"});
    return *date;
}

}  // namespace holdfast::stores::etcd
