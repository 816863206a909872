#pragma once

#include "holdfast/clock.hpp"

#include <chrono>
#include <curl/curl.h>
#include <expected>
#include <memory>
#include <string>

namespace holdfast::stores::etcd {

using CurlHandle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

/// A handle with what all connections have in common. `ca_file` may be empty.
[[nodiscard]] CurlHandle make_handle(const std::string& ca_file);
/// Why it failed, in words. `details` is what libcurl wrote into its buffer.
[[nodiscard]] std::string words_of(CURLcode code, const char* details);

struct HttpFailure {
    bool is_there = false;  ///< Somebody took the question, and did not answer it.
    std::string what{};
};

/// Asks nodes what time it is, which gRPC does not say: every answer to HTTP/1.1 has a `Date`. One conversation at a
/// time; its connections stay open for the next.
class Http {
public:
    explicit Http(const std::string& ca_file);

    /// The clock of who answered, in whole seconds.
    [[nodiscard]] std::expected<Instant, HttpFailure> date(const std::string& url, std::chrono::milliseconds timeout);

private:
    CurlHandle handle_;
};

}  // namespace holdfast::stores::etcd
