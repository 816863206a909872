#pragma once

#include "client/policy.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

/// The daemon. It is a module, as stores with large drivers are: a command that does not serve does not load Boost's
/// network code and OpenSSL.
namespace holdfast::server {

struct Limits {
    std::size_t body = std::size_t{1} << 20;     ///< Bytes.
    std::size_t header = std::size_t{16} << 10;  ///< Bytes.
    std::size_t connections = 10'000;
    std::size_t queue = 10'000;                    ///< Requests that wait for the store.
    std::size_t batch = 1'000;                     ///< Requests in one call of /v1/batch, and in one of the store.
    std::chrono::milliseconds read_time{10'000};   ///< For one request, from its first byte to its last.
    std::chrono::milliseconds idle_time{75'000};   ///< Of a connection between two requests.
    std::chrono::milliseconds write_time{30'000};  ///< Without progress.
    std::chrono::milliseconds longest_wait{24 * 3'600'000};  ///< That `wait_ms` can ask for.
    std::size_t event_bytes = std::size_t{1} << 20;          ///< Events that wait for one slow reader.
};

struct ServeOptions {
    std::string listen = "127.0.0.1:7420";
    std::vector<std::string> hosts{};  ///< Names by which clients call it, beside those of the loopback.
    std::string tls_cert{};            ///< Files; both or none.
    std::string tls_key{};
    std::string token_file{};                      ///< Who may do what. Empty: everybody on this host everything.
    std::string trust_header{};                    ///< In which a proxy names the user.
    std::vector<std::string> trust_from{};         ///< The addresses, or networks, of such proxies.
    std::chrono::milliseconds sweep_every{5'000};  ///< How often leases that ran out are looked for. Zero: never.
    std::chrono::milliseconds keep = std::chrono::days{90};  ///< Older audit events are removed. Zero: none are.
    std::size_t metrics_locks = 100;                         ///< So many locks have figures of their own.
    std::vector<std::string> metrics_without{};              ///< None whose name begins like this.
    std::string port_file{};                                 ///< Receives the port, when it listens.
    bool logs_requests = false;
    Limits limits{};
    std::chrono::milliseconds patience{10'000};    ///< For one call of the store.
    std::chrono::milliseconds stop_grace{10'000};  ///< For requests under way when it is asked to stop.
    std::string version{};
    /// What the configured policies make of a wish.
    std::function<Result<client::Terms>(const LockName& name, const client::Wish& wish)> terms{};
    /// Receives one line of the log, without its end. May be called from any thread.
    std::function<void(std::string_view line)> log{};
    /// Called once, with the URL under which it can be reached.
    std::function<void(const std::string& url)> listening{};
    std::stop_token stop{};
};

/// Loads the module and serves until `options.stop`. An error if it could not begin.
[[nodiscard]] Result<void> serve(Store& store, const Clock& clock, const ServeOptions& options);

}  // namespace holdfast::server
