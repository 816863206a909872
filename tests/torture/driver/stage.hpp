#pragma once

#include "torture/driver/choices.hpp"

#include <memory>
#include <string>
#include <vector>

namespace torture {

/// The store of a run, and what can be done to it.
class Stage {
public:
    virtual ~Stage() = default;

    /// What clients open.
    [[nodiscard]] virtual std::string url() const = 0;
    /// The same store for the checker, without the proxy that loses messages.
    [[nodiscard]] virtual std::string inner_url() const { return url(); }
    /// For how long after the end of a lease it lets nobody else in.
    [[nodiscard]] virtual std::chrono::milliseconds margin() const { return {}; }
    /// The faults that it can suffer, beside those of its clients.
    [[nodiscard]] virtual std::vector<std::string> faults() const { return {}; }
    /// Begins and ends a fault.
    virtual void begin(const Choice& choice);
    virtual void finish(const Choice&) {}
};

/// Where a store in files is: on the disk of this host, or on one that can be made full.
enum class Place { host, small_disk };

/// `store` is a kind of store, which starts empty; or a URL, whose store is taken as it is. Throws
/// std::invalid_argument where there is no such kind.
[[nodiscard]] std::unique_ptr<Stage> set_up(const std::string& store, Place place);

/// `file` and `sqlite`.
[[nodiscard]] std::unique_ptr<Stage> set_up_folder(const std::string& scheme, Place place);
/// `postgres`, `mysql`, `redis` and `etcd`; `http` is a daemon with a SQLite store.
[[nodiscard]] std::unique_ptr<Stage> set_up_server(const std::string& kind);
/// A daemon in front of a PostgreSQL server, each of which can suffer.
[[nodiscard]] std::unique_ptr<Stage> set_up_daemon_on_server();
/// Three nodes of etcd.
[[nodiscard]] std::unique_ptr<Stage> set_up_cluster();

}  // namespace torture
