#pragma once

#include "holdfast/clock.hpp"

#include <chrono>
#include <curl/curl.h>
#include <expected>
#include <memory>
#include <string>

namespace holdfast::stores::etcd {

using CurlHandle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

/// A libcurl handle with the settings of all connections. `ca_file` may be empty.
[[nodiscard]] CurlHandle make_handle(const std::string& ca_file);
/// The error as text. `details` is libcurl's error buffer.
[[nodiscard]] std::string words_of(CURLcode code, const char* details);

struct HttpFailure {
    bool is_there = false;  ///< The request was accepted and not answered.
    std::string what{};
};

/// Asks nodes for the time, which gRPC answers do not have: every answer to HTTP/1.1 has a `Date`. One request at a
/// time; connections stay open for the next one.
class Http {
public:
    explicit Http(const std::string& ca_file);

    /// The clock of the node that answered, in whole seconds.
    [[nodiscard]] std::expected<Instant, HttpFailure> date(const std::string& url, std::chrono::milliseconds timeout);

private:
    CurlHandle handle_;
};

}  // namespace holdfast::stores::etcd
