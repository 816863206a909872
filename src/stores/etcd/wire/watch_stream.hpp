#pragma once

#include "base/fd.hpp"
#include "stores/etcd/cluster.hpp"
#include "stores/etcd/wire/messages.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::stores::etcd {

/// A watch on one key: a call that goes on, with an answer message by message. Only a hint: whoever hears nothing looks
/// again from time to time.
class WatchStream {
public:
    /// `cluster` must outlive it.
    WatchStream(Cluster& cluster, std::size_t endpoint, const std::string& message);
    WatchStream(const WatchStream&) = delete;
    WatchStream& operator=(const WatchStream&) = delete;
    ~WatchStream();

    /// The next message, if one comes within `time` and nobody calls `wake`. Once it is over it stays over.
    [[nodiscard]] std::optional<WatchNews> next(std::chrono::milliseconds time);
    /// Ends `next` at once. From any thread.
    void wake();

private:
    [[nodiscard]] std::optional<WatchNews> buffered();

    Cluster& cluster_;
    const std::size_t endpoint_;
    const base::Fd woken_;  ///< An eventfd.
    std::unique_ptr<Channel> channel_;
};

/// Watches that nobody listens to just now. A waiter that looks up once a second finds its own again.
class WatchPool {
public:
    struct Entry {
        std::string key{};
        std::size_t endpoint = 0;
        std::unique_ptr<WatchStream> stream{};
        Boottime since{};  ///< When it was last used.
    };

    /// The watch on `key` at `endpoint`, if there is one.
    [[nodiscard]] std::unique_ptr<WatchStream> take(const std::string& key, std::size_t endpoint);
    void give_back(const std::string& key, std::size_t endpoint, std::unique_ptr<WatchStream> stream);

private:
    std::mutex mutex_;
    std::vector<Entry> idle_{};  ///< Guarded by mutex_. The oldest first.
};

}  // namespace holdfast::stores::etcd
