#include "stores/etcd/http.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <strings.h>

namespace holdfast::stores::etcd {
namespace {

/// Larger answers are refused rather than kept: nothing that a store asks for comes near.
constexpr std::size_t largest_answer = std::size_t{256} << 20U;

std::size_t keep_body(char* data, std::size_t size, std::size_t count, void* into) {
    auto& body = static_cast<HttpAnswer*>(into)->body;
    if (body.size() + size * count > largest_answer) return 0;
    body.append(data, size * count);
    return size * count;
}

std::size_t keep_date(char* data, std::size_t size, std::size_t count, void* into) {
    constexpr std::string_view name = "date:";
    const std::string line(data, size * count);
    if (line.size() > name.size() && strncasecmp(line.c_str(), name.data(), name.size()) == 0) {
        const time_t seconds = curl_getdate(line.c_str() + name.size(), nullptr);
        if (seconds > 0) static_cast<HttpAnswer*>(into)->date = Instant{std::chrono::seconds{seconds}};
    }
    return size * count;
}

/// Not by how it ended: libcurl sends a request that got no answer on an open connection again by itself, and may say
/// of the second attempt that nobody listens.
bool was_sent(CURL* handle) {
    long bytes = 0;
    curl_easy_getinfo(handle, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
}

bool was_kept_open(CURL* handle) {
    long connects = 0;
    curl_easy_getinfo(handle, CURLINFO_NUM_CONNECTS, &connects);
    return connects == 0;
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
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    if (!ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file.c_str());
    return handle;
}

CurlHeaders make_headers(const std::string& token) {
    curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
    list = curl_slist_append(list, "Expect:");
    if (!token.empty()) list = curl_slist_append(list, ("Authorization: " + token).c_str());
    return {list, curl_slist_free_all};
}

Http::Http(const std::string& ca_file) : handle_(make_handle(ca_file)) {
    curl_easy_setopt(handle_.get(), CURLOPT_WRITEFUNCTION, keep_body);
    curl_easy_setopt(handle_.get(), CURLOPT_HEADERFUNCTION, keep_date);
}

std::expected<HttpAnswer, HttpFailure> Http::post(const std::string& url, const std::string& body,
                                                  const std::string& token, std::chrono::milliseconds timeout) {
    CURL* curl = handle_.get();
    const CurlHeaders headers = make_headers(token);
    HttpAnswer answer;
    std::array<char, CURL_ERROR_SIZE> details{};
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    // Zero would mean for ever.
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(timeout.count(), 1)));
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details.data());

    CURLcode code = curl_easy_perform(curl);
    // A connection that was reset while it idled says nothing about the server, and nothing was sent on it. A server
    // that cannot be reached in time gets no second time.
    const bool is_broken = code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING;
    if (is_broken && !was_sent(curl) && was_kept_open(curl)) code = curl_easy_perform(curl);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, nullptr);
    if (code != CURLE_OK)
        return std::unexpected(
            HttpFailure{was_sent(curl), details[0] != 0 ? details.data() : curl_easy_strerror(code)});
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
    answer.maybe_repeated = !was_kept_open(curl);
    return answer;
}

}  // namespace holdfast::stores::etcd
