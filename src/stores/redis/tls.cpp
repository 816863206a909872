#include "stores/redis/tls.hpp"

#include <arpa/inet.h>
#include <array>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace holdfast::stores::redis {
namespace {

std::string last_words() {
    const unsigned long code = ERR_peek_last_error();
    ERR_clear_error();
    std::array<char, 256> text{};
    if (code == 0) return "the connection ended";
    ERR_error_string_n(code, text.data(), text.size());
    return text.data();
}

bool is_ip_address(const std::string& host) {
    std::array<unsigned char, 16> bytes{};
    return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 || inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

Result<void> trust(SSL_CTX* context, const Address& address) {
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    if (address.tls == Tls::unverified) return {};
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    const int loaded = address.tls_ca.empty() ? SSL_CTX_set_default_verify_paths(context)
                                              : SSL_CTX_load_verify_locations(context, address.tls_ca.c_str(), nullptr);
    if (loaded != 1)
        return fail(Errc::config, "the certificates in " + address.tls_ca + " cannot be read: " + last_words());
    return {};
}

/// The certificate must be that of the host in the URL, and not just any trusted one.
bool expect_host(SSL* ssl, const Address& address) {
    if (is_ip_address(address.host))
        return address.tls == Tls::unverified ||
               X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), address.host.c_str()) == 1;
    // SSL_set_tlsext_host_name without its old-style cast.
    std::string name = address.host;
    if (SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) != 1) return false;
    if (address.tls == Tls::unverified) return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, address.host.c_str()) == 1;
}

}  // namespace

Result<std::unique_ptr<TlsSession>> TlsSession::client_of(const Address& address) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    if (!context) return fail(Errc::store_unavailable, "OpenSSL cannot start: " + last_words());
    if (auto trusted = trust(context.get(), address); !trusted) return std::unexpected(trusted.error());
    SSL* ssl = SSL_new(context.get());
    if (ssl == nullptr) return fail(Errc::store_unavailable, "OpenSSL cannot start: " + last_words());
    std::unique_ptr<TlsSession> session(new TlsSession(ssl));
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (!expect_host(ssl, address))
        return fail(Errc::usage, "no certificate can be for the host in the store's URL: " + last_words());
    SSL_set_connect_state(ssl);
    return session;
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

std::expected<TlsSession::Need, std::string> TlsSession::judge(int result) const {
    switch (SSL_get_error(ssl_, result)) {
        case SSL_ERROR_NONE: return Need::nothing;
        case SSL_ERROR_WANT_READ: return Need::input;
        case SSL_ERROR_ZERO_RETURN: return Need::closed;
        default: break;
    }
    const long verdict = SSL_get_verify_result(ssl_);
    if (verdict != X509_V_OK) {
        ERR_clear_error();
        return std::unexpected(std::string("its certificate is refused: ") + X509_verify_cert_error_string(verdict));
    }
    return std::unexpected("TLS: " + last_words());
}

std::expected<TlsSession::Need, std::string> TlsSession::shake_hands() {
    ERR_clear_error();
    return judge(SSL_do_handshake(ssl_));
}

std::expected<TlsSession::Need, std::string> TlsSession::read(std::span<char> into, std::size_t& count) {
    ERR_clear_error();
    count = 0;
    return judge(SSL_read_ex(ssl_, into.data(), into.size(), &count));
}

std::expected<void, std::string> TlsSession::write(std::string_view bytes) {
    ERR_clear_error();
    std::size_t written = 0;
    // Writes to memory, so it writes everything or fails.
    const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written);
    if (result == 1 && written == bytes.size()) return {};
    return std::unexpected("TLS: " + last_words());
}

void TlsSession::feed(std::span<const char> bytes) {
    BIO_write(SSL_get_rbio(ssl_), bytes.data(), static_cast<int>(bytes.size()));
}

std::string TlsSession::take_output() {
    BIO* const out = SSL_get_wbio(ssl_);
    std::string bytes(BIO_ctrl_pending(out), '\0');
    if (bytes.empty()) return bytes;
    const int count = BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(std::max(count, 0)));
    return bytes;
}

}  // namespace holdfast::stores::redis
