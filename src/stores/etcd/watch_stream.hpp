#pragma once

#include "stores/etcd/http.hpp"
#include "stores/etcd/messages.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::stores::etcd {

/// A watch on one key: an answer of etcd that goes on line by line. Only a hint: whoever hears nothing looks again
/// from time to time.
class WatchStream {
public:
    WatchStream(const std::string& url, const std::string& ca_file, const std::string& token, const std::string& body);
    WatchStream(const WatchStream&) = delete;
    WatchStream& operator=(const WatchStream&) = delete;
    ~WatchStream();

    /// The next line, if one comes within `time` and nobody calls `wake`. Once it is over it stays over.
    [[nodiscard]] std::optional<WatchNews> next(std::chrono::milliseconds time);
    /// Ends `next` at once. From any thread.
    void wake();

private:
    [[nodiscard]] std::optional<WatchNews> buffered();
    void advance();

    const std::string body_;
    const CurlHeaders headers_;
    const CurlHandle handle_;
    CURLM* const multi_;
    std::string received_{};
    bool over_ = false;
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
