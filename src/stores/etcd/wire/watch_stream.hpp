#pragma once

#include "stores/etcd/cluster.hpp"
#include "stores/etcd/wire/messages.hpp"

#include <memory>
#include <optional>

namespace holdfast::stores::etcd {

/// One call to a node with any number of watches, whose events come message by message. For one thread at a time.
class WatchStream {
public:
    /// `cluster` must outlive it. Without a connection the stream is over from the beginning.
    WatchStream(Cluster& cluster, std::size_t endpoint);
    WatchStream(const WatchStream&) = delete;
    WatchStream& operator=(const WatchStream&) = delete;
    /// Ends all its watches. The connection serves other calls.
    ~WatchStream();

    [[nodiscard]] std::size_t endpoint() const { return endpoint_; }
    /// Once it is over it stays over.
    [[nodiscard]] bool is_over() const { return !channel_ || channel_->end(); }

    void create(WatchId id, std::string_view key, bool only_deletes);
    void cancel(WatchId id);

    /// Sends pending requests, and waits until a message has arrived, `time` is over, or `wake` can be read.
    void wait(std::chrono::milliseconds time, int wake);
    /// The next message that has arrived.
    [[nodiscard]] std::optional<WatchNews> next();

private:
    Cluster& cluster_;
    const std::size_t endpoint_;
    std::unique_ptr<Channel> channel_;
};

}  // namespace holdfast::stores::etcd
