#pragma once

#include "holdfast/clock.hpp"

#include <chrono>
#include <curl/curl.h>
#include <expected>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::stores::etcd {

struct HttpAnswer {
    long status = 0;
    std::string body{};
    std::optional<Instant> date{};  ///< The clock of who answered, in whole seconds.
};

struct HttpFailure {
    bool sent = false;  ///< The request may have arrived: nobody knows what came of it.
    std::string what{};
};

using CurlHandle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using CurlHeaders = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

/// A handle with what all requests have in common. `ca_file` may be empty.
[[nodiscard]] CurlHandle make_handle(const std::string& ca_file);
[[nodiscard]] CurlHeaders make_headers(const std::string& token);

/// One conversation at a time; its connections stay open for the next.
class Http {
public:
    explicit Http(const std::string& ca_file);

    [[nodiscard]] std::expected<HttpAnswer, HttpFailure> post(const std::string& url, const std::string& body,
                                                              const std::string& token,
                                                              std::chrono::milliseconds timeout);

private:
    CurlHandle handle_;
};

}  // namespace holdfast::stores::etcd
