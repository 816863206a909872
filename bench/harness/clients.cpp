#include "harness/clients.hpp"

#include "harness/programs.hpp"
#include "holdfast/open.hpp"

#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <thread>

namespace holdfast::bench {
namespace {

class LibraryClient final : public Client {
public:
    LibraryClient(Store& store, int batch) : store_(store), batch_(batch) {}

    int work() override {
        std::vector<Request> acquires;
        std::vector<Request> releases;
        for (int i = 0; i < batch_; ++i) {
            auto name = LockName::parse(fmt::format("{}/{}", own_, count_++)).value();
            const Credentials as = Credentials::random();
            releases.emplace_back(Release{name, as});
            acquires.emplace_back(Acquire{.name = std::move(name), .as = as, .holder = holder_, .ttl = ttl_});
        }
        apply(acquires);
        apply(releases);
        return batch_;
    }

private:
    void apply(std::span<const Request> requests) {
        const auto replies = store_.apply(requests, Deadline::in(host_clock(), std::chrono::seconds{30}));
        if (!replies) give_up(replies.error().message);
        for (const Reply& reply : *replies)
            if (!reply) give_up(reply.error().message);
    }

    Store& store_;
    const int batch_;
    const std::string own_ = LockId::random().text();
    const Holder holder_ = Holder::this_process();
    const Ttl ttl_ = Ttl::of(std::chrono::seconds{30}).value();
    int count_ = 0;
};

}  // namespace

double pairs_per_second(const Clients& clients, std::chrono::milliseconds time) {
    std::barrier ready(static_cast<std::ptrdiff_t>(clients.size() + 1));
    std::atomic<bool> is_over = false;
    std::atomic<long> pairs = 0;
    std::vector<std::jthread> threads;
    for (const auto& client : clients)
        threads.emplace_back([&] {
            ready.arrive_and_wait();
            long own = 0;
            while (!is_over) own += client->work();
            pairs += own;
        });
    ready.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(time);
    is_over = true;
    threads.clear();
    // What was under way when the time was over counts, and so does its time.
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(pairs) / took.count();
}

Clients library_clients(Store& store, int count, int batch) {
    Clients clients;
    for (int i = 0; i < count; ++i) clients.push_back(std::make_unique<LibraryClient>(store, batch));
    return clients;
}

std::unique_ptr<Store> opened(const std::string& url) {
    auto store = open_store(url);
    if (!store) give_up(store.error().message);
    return std::move(*store);
}

}  // namespace holdfast::bench
