#include "stores/etcd/watch_stream.hpp"

#include <algorithm>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_idle = 64;
constexpr milliseconds longest_idle{10'000};
/// A stopped node accepts connections and never says a word.
constexpr long connect_ms = 2000;

std::size_t keep(char* data, std::size_t size, std::size_t count, void* into) {
    static_cast<std::string*>(into)->append(data, size * count);
    return size * count;
}

}  // namespace

WatchStream::WatchStream(const std::string& url, const std::string& ca_file, const std::string& token,
                         const std::string& body)
    : body_(body), headers_(make_headers(token)), handle_(make_handle(ca_file)), multi_(curl_multi_init()) {
    CURL* curl = handle_.get();
    curl_easy_setopt(curl, CURLOPT_URL, (url + "/v3/watch").c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body_.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received_);
    over_ = multi_ == nullptr || curl_multi_add_handle(multi_, curl) != CURLM_OK;
    if (!over_) advance();
}

WatchStream::~WatchStream() {
    if (multi_ == nullptr) return;
    curl_multi_remove_handle(multi_, handle_.get());
    curl_multi_cleanup(multi_);
}

std::optional<WatchNews> WatchStream::next(milliseconds time) {
    if (auto news = buffered()) return news;
    advance();
    if (auto news = buffered()) return news;
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(std::clamp<std::int64_t>(time.count(), 0, 1000)), nullptr);
    advance();
    return buffered();
}

void WatchStream::wake() {
    if (multi_ != nullptr) curl_multi_wakeup(multi_);
}

void WatchStream::advance() {
    int running = 0;
    if (over_) return;
    if (curl_multi_perform(multi_, &running) != CURLM_OK || running == 0) over_ = true;
}

std::optional<WatchNews> WatchStream::buffered() {
    const auto end = received_.find('\n');
    if (end != std::string::npos) {
        WatchNews news = read_news(std::string_view(received_).substr(0, end));
        received_.erase(0, end + 1);
        return news;
    }
    if (over_) return WatchNews{.over = true};
    return std::nullopt;
}

std::unique_ptr<WatchStream> WatchPool::take(const std::string& key, std::size_t endpoint) {
    const std::scoped_lock lock(mutex_);
    const auto found =
        std::ranges::find_if(idle_, [&](const Entry& one) { return one.key == key && one.endpoint == endpoint; });
    if (found == idle_.end()) return nullptr;
    auto stream = std::move(found->stream);
    idle_.erase(found);
    return stream;
}

void WatchPool::give_back(const std::string& key, std::size_t endpoint, std::unique_ptr<WatchStream> stream) {
    // Real time: etcd keeps the connection whatever the clock of a test says.
    const Boottime now = host_clock().boottime();
    const std::scoped_lock lock(mutex_);
    std::erase_if(idle_, [&](const Entry& one) { return now - one.since > longest_idle; });
    if (idle_.size() >= most_idle) idle_.erase(idle_.begin());
    idle_.push_back({key, endpoint, std::move(stream), now});
}

}  // namespace holdfast::stores::etcd
