#include "stores/etcd/wire/connection.hpp"

#include <algorithm>
#include <array>
#include <openssl/ssl.h>
#include <poll.h>

namespace holdfast::stores::etcd {
namespace {

/// Negotiates HTTP/2 in the TLS handshake. Not by libcurl's option, with which libcurl would speak HTTP/2 itself; 7.88
/// then fails at the second request on an unencrypted connection.
CURLcode offer_http2(CURL* /*curl*/, void* context, void* /*user*/) {
    constexpr std::array<unsigned char, 3> protocols{2, 'h', '2'};
    // It returns 0 when it is done.
    return SSL_CTX_set_alpn_protos(static_cast<SSL_CTX*>(context), protocols.data(), protocols.size()) == 0
               ? CURLE_OK
               : CURLE_SSL_CONNECT_ERROR;
}

}  // namespace

std::expected<Connection, std::string> Connection::open(const Endpoint& endpoint, const std::string& ca_file,
                                                        std::chrono::milliseconds timeout) {
    CurlHandle handle = make_handle(ca_file);
    CURL* curl = handle.get();
    std::array<char, CURL_ERROR_SIZE> details{};
    curl_easy_setopt(curl, CURLOPT_URL, endpoint.url.c_str());
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_ENABLE_ALPN, 0L);
    if (curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, offer_http2) != CURLE_OK && endpoint.url.starts_with("https"))
        return std::unexpected("this libcurl does not use OpenSSL");
    // Zero would mean for ever.
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(timeout.count(), 1)));
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details.data());
    const CURLcode code = curl_easy_perform(curl);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
    if (code != CURLE_OK) return std::unexpected(words_of(code, details.data()));
    curl_socket_t socket = CURL_SOCKET_BAD;
    curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &socket);
    return Connection(std::move(handle), socket);
}

std::optional<std::size_t> Connection::send(std::string_view bytes) {
    std::size_t sent = 0;
    const CURLcode code = curl_easy_send(handle_.get(), bytes.data(), bytes.size(), &sent);
    if (code == CURLE_AGAIN) return 0;
    if (code != CURLE_OK) return std::nullopt;
    return sent;
}

std::optional<std::size_t> Connection::receive(std::span<char> into) {
    std::size_t received = 0;
    const CURLcode code = curl_easy_recv(handle_.get(), into.data(), into.size(), &received);
    if (code == CURLE_AGAIN) return 0;
    if (code != CURLE_OK || received == 0) return std::nullopt;
    return received;
}

void Connection::wait(For what, std::chrono::milliseconds time, int wake) const {
    const short events = what == For::reading ? POLLIN : POLLIN | POLLOUT;
    std::array<pollfd, 2> fds{{{socket_, events, 0}, {wake, POLLIN, 0}}};
    // Not for ever: timers do not count suspended time.
    poll(fds.data(), wake < 0 ? 1 : 2, static_cast<int>(std::clamp<std::int64_t>(time.count(), 0, 1000)));
}

}  // namespace holdfast::stores::etcd
