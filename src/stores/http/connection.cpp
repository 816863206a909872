#include "stores/http/connection.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <strings.h>
#include <sys/socket.h>

namespace holdfast::stores::http {
namespace {

using std::chrono::milliseconds;

/// More is no answer that anybody asked for.
constexpr std::size_t longest_answer = std::size_t{64} << 20;

CURL* new_handle() {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    CURL* const handle = ready == CURLE_OK ? curl_easy_init() : nullptr;
    if (handle == nullptr) throw std::runtime_error("libcurl cannot be used");
    return handle;
}

/// The value of a header, if `line` is that header.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
    if (line.size() <= name.size() || line[name.size()] != ':') return std::nullopt;
    if (strncasecmp(line.data(), name.data(), name.size()) != 0) return std::nullopt;
    std::string_view value = line.substr(name.size() + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
    while (!value.empty() && (value.back() == '\r' || value.back() == '\n' || value.back() == ' '))
        value.remove_suffix(1);
    return value;
}

std::optional<Instant> instant_in(std::string_view text) {
    std::int64_t ms = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), ms);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
    return Instant{milliseconds{ms}};
}

/// Host and path of a redirect, for people.
std::string shown_redirect(std::string_view target) {
    target = target.substr(0, target.find_first_of("?#"));
    if (const auto at = target.rfind('@'); at != std::string_view::npos) target.remove_prefix(at + 1);
    return printable(end_of(std::string(target), 200));
}

bool is_config_error(CURLcode code) {
    switch (code) {
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_ISSUER_ERROR: return true;
        default: return false;
    }
}

}  // namespace

HttpTransfer::HttpTransfer(const Address& address) : address_(address), handle_(new_handle(), curl_easy_cleanup) {
    CURL* const curl = handle_.get();
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_MAXCONNECTS, 1L);
    // A server that answers with another address would have the token and the lease sent there.
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!address.ca_file.empty()) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, address.ca_file.c_str());
        // Otherwise those of the system would be trusted, too.
        curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
    }
    // A proxy of the environment is for other hosts; from there this one's loopback is another one. It sees no header
    // that is meant for the daemon.
    if (address.is_loopback) curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, 15L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, 5L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, before_request);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, this);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, check_budget);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details_.data());
}

HttpTransfer::~HttpTransfer() { curl_slist_free_all(headers_); }

void HttpTransfer::prepare(const Question& question, milliseconds most, const base::CallBudget* budget) {
    CURL* const curl = handle_.get();
    answer_ = {};
    budget_ = budget;
    times_sent_ = 0;
    details_.front() = 0;
    curl_slist_free_all(std::exchange(headers_, nullptr));
    const auto header = [&](const std::string& line) { headers_ = curl_slist_append(headers_, line.c_str()); };
    if (!address_.token.empty()) header("Authorization: Bearer " + address_.token);
    header("Accept: application/json");
    if (question.late_after)
        header(fmt::format("Holdfast-Before: {}", question.late_after->time_since_epoch().count()));
    if (question.store_id) header("Holdfast-Store: " + question.store_id->text());
    if (question.body) {
        header("Content-Type: application/json");
        // Otherwise libcurl sends the headers of a large body alone, and waits a second for permission.
        header("Expect:");
        body_ = *question.body;
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body_.data());
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
    } else {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_);
    curl_easy_setopt(curl, CURLOPT_URL, (address_.base + question.path).c_str());
    // Zero would mean for ever.
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(most.count(), 1)));
}

std::expected<Answer, ExchangeError> HttpTransfer::finish(CURLcode code) {
    if (code != CURLE_OK) {
        std::string why = details_.front() != 0 ? details_.data() : curl_easy_strerror(code);
        if (code == CURLE_ABORTED_BY_CALLBACK)
            why = times_sent_ > 1 ? "the connection ended before an answer came" : "no answer came in time";
        return std::unexpected(ExchangeError{times_sent_ > 0, std::move(why), is_config_error(code)});
    }
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &answer_.status);
    return std::move(answer_);
}

std::size_t HttpTransfer::take_body(char* data, std::size_t size, std::size_t count, void* self) {
    auto& body = static_cast<HttpTransfer*>(self)->answer_.body;
    if (body.size() + size * count > longest_answer) return 0;
    body.append(data, size * count);
    return size * count;
}

std::size_t HttpTransfer::take_header(char* data, std::size_t size, std::size_t count, void* self) {
    const std::string_view line(data, size * count);
    Answer& answer = static_cast<HttpTransfer*>(self)->answer_;
    if (const auto time = value_of(line, "Holdfast-Time")) answer.daemon_time = instant_in(*time);
    if (const auto target = value_of(line, "Location")) answer.redirect = shown_redirect(*target);
    return size * count;
}

/// libcurl sends a request again by itself if an old connection ended before the answer. The second copy would find
/// what the first one did, and be refused for it.
int HttpTransfer::before_request(void* self, char* /*ip*/, char* /*local_ip*/, int /*port*/, int /*local_port*/) {
    auto* const transfer = static_cast<HttpTransfer*>(self);
    return ++transfer->times_sent_ == 1 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/// libcurl's timers do not count suspended time, and know nothing of a clock that a test moves.
int HttpTransfer::check_budget(void* self, curl_off_t /*total*/, curl_off_t /*now*/, curl_off_t /*up_total*/,
                               curl_off_t /*up_now*/) {
    const auto* const budget = static_cast<HttpTransfer*>(self)->budget_;
    return budget != nullptr && budget->over() ? 1 : 0;
}

std::expected<Answer, ExchangeError> Connection::exchange(const Question& question, const base::CallBudget& budget) {
    transfer_.prepare(question, budget.left(), &budget);
    const CURLcode code = curl_easy_perform(transfer_.handle());
    auto answer = transfer_.finish(code);
    is_usable_ = answer.has_value();
    return answer;
}

bool Connection::is_alive() const {
    curl_socket_t socket = CURL_SOCKET_BAD;
    if (curl_easy_getinfo(transfer_.handle(), CURLINFO_ACTIVESOCKET, &socket) != CURLE_OK || socket == CURL_SOCKET_BAD)
        return false;
    char byte = 0;
    const ssize_t got = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    // What comes without a question is no answer. TLS itself may send something after its handshake.
    return (got > 0 && is_encrypted_) || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

Error not_reached(const Address& address, const ExchangeError& error) {
    return {error.is_config ? Errc::config : Errc::store_unavailable,
            fmt::format("the daemon at {} is not reached: {}", address.shown, printable(error.why))};
}

}  // namespace holdfast::stores::http
