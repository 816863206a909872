#pragma once

#include "harness/clients.hpp"

#include <cstdint>

typedef void CURL;

namespace holdfast::bench {

/// etcd's own lock service, over its JSON gateway: what Go's concurrency.Mutex does, done by the server. A client has
/// one connection and, as a Go session, one lease for all its locks.
class EtcdLock {
public:
    explicit EtcdLock(std::uint16_t port);
    EtcdLock(const EtcdLock&) = delete;
    EtcdLock& operator=(const EtcdLock&) = delete;
    ~EtcdLock();

    /// Waits until it has it. `name` is in base64, as everything here: letters and digits, a multiple of four.
    void lock(const std::string& name);
    void unlock();

private:
    /// The answer's field `name`.
    std::string call(const std::string& path, const std::string& body, std::string_view field);

    std::string root_;
    CURL* connection_;
    std::string lease_{};
    std::string key_{};
};

/// Clients that take a lock and give it back.
[[nodiscard]] Clients etcd_locks(std::uint16_t port, int count);

}  // namespace holdfast::bench
