#include "peers/etcd_lock.hpp"

#include "harness/programs.hpp"

#include <fmt/format.h>

#include <curl/curl.h>

namespace holdfast::bench {
namespace {

std::size_t append(char* data, std::size_t size, std::size_t count, void* text) {
    static_cast<std::string*>(text)->append(data, size * count);
    return size * count;
}

class EtcdClient final : public Client {
public:
    EtcdClient(std::uint16_t port, int number) : etcd_(port), number_(number) {}

    int work() override {
        etcd_.lock(fmt::format("lock{:04}{:08}", number_, count_++));
        etcd_.unlock();
        return 1;
    }

private:
    EtcdLock etcd_;
    const int number_;
    int count_ = 0;
};

}  // namespace

EtcdLock::EtcdLock(std::uint16_t port)
    : root_(fmt::format("http://127.0.0.1:{}/v3/", port)), connection_(curl_easy_init()) {
    curl_easy_setopt(connection_, CURLOPT_PROXY, "");
    curl_easy_setopt(connection_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(connection_, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(connection_, CURLOPT_WRITEFUNCTION, append);
    lease_ = call("lease/grant", R"({"TTL":3600})", "ID");
}

EtcdLock::~EtcdLock() { curl_easy_cleanup(connection_); }

void EtcdLock::lock(const std::string& name) {
    key_ = call("lock/lock", fmt::format(R"({{"name":"{}","lease":"{}"}})", name, lease_), "key");
}

void EtcdLock::unlock() { call("lock/unlock", fmt::format(R"({{"key":"{}"}})", key_), "revision"); }

std::string EtcdLock::call(const std::string& path, const std::string& body, std::string_view field) {
    std::string answer;
    curl_easy_setopt(connection_, CURLOPT_URL, (root_ + path).c_str());
    curl_easy_setopt(connection_, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(connection_, CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(connection_, CURLOPT_WRITEDATA, &answer);
    const CURLcode status = curl_easy_perform(connection_);
    if (status != CURLE_OK) give_up(fmt::format("etcd: {}", curl_easy_strerror(status)));
    // Nothing in these answers contains a quote.
    const std::string mark = fmt::format("\"{}\":\"", field);
    const auto at = answer.find(mark);
    if (at == std::string::npos) give_up("etcd answers: " + answer);
    const auto begin = at + mark.size();
    return answer.substr(begin, answer.find('"', begin) - begin);
}

Clients etcd_locks(std::uint16_t port, int count) {
    Clients clients;
    for (int i = 0; i < count; ++i) clients.push_back(std::make_unique<EtcdClient>(port, i));
    return clients;
}

}  // namespace holdfast::bench
