#pragma once

#include "holdfast/clock.hpp"
#include "stores/etcd/wire/watch_stream.hpp"

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

namespace holdfast::stores::etcd {

/// A watched key. Several listeners can share it.
struct WatchedKey {
    std::string key{};
    bool only_deletes = false;  ///< Ignore all other changes.

    [[nodiscard]] auto operator<=>(const WatchedKey&) const = default;
};

/// What etcd reported about the key of some listeners.
struct KeyNews {
    std::vector<std::uint64_t> listeners{};
    /// The watch has just begun, and may have missed events up to this revision. 0: it had begun before.
    Revision began_after = 0;
    std::vector<KeyValue> events{};
};

/// Watches on keys, all on one stream to the node that is asked first. Only hints: a stream can break, and a node can
/// be cut off from the others. For one thread at a time.
class KeyWatches {
public:
    /// `cluster` must outlive it.
    explicit KeyWatches(Cluster& cluster) : cluster_(cluster) {}

    /// From now on `listener` is told of `key` and of nothing else. False if there is no stream now.
    [[nodiscard]] bool listen(std::uint64_t listener, const WatchedKey& key);
    void drop(std::uint64_t listener);

    /// Ends the stream if another node is asked first by now. True if it was ended: then all listeners must look and
    /// listen again.
    [[nodiscard]] bool leave_old_node();

    struct News {
        bool lost = false;  ///< The stream is over: all listeners must look and listen again.
        std::vector<KeyNews> keys{};
    };
    /// Waits until there is news, `most` is over, or `wake` can be read.
    [[nodiscard]] News wait(std::chrono::milliseconds most, int wake);

private:
    struct Watched {
        WatchId id = 0;
        std::set<std::uint64_t> listeners{};
    };
    using ByKey = std::map<WatchedKey, Watched>;

    void leave(std::uint64_t listener);
    void close();

    Cluster& cluster_;
    std::unique_ptr<WatchStream> stream_{};
    ByKey watched_{};
    std::unordered_map<WatchId, ByKey::iterator> by_id_{};
    std::unordered_map<std::uint64_t, ByKey::iterator> by_listener_{};
    WatchId last_id_ = 0;
    std::optional<Deadline> rests_until_{};  ///< After a stream that broke.
};

}  // namespace holdfast::stores::etcd
