#include "base/fd.hpp"
#include "harness/programs.hpp"
#include "harness/socket_load.hpp"
#include "holdfast/lease.hpp"
#include "measures/measures.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <array>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <memory>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace holdfast::bench {
namespace {

using std::chrono::steady_clock;

constexpr int held_locks = 100'000;
constexpr int at_once = 500;
constexpr int crowd = 2'000;
constexpr int samples = 1'000;
constexpr double most_megabytes = 300;

std::string asked(const Socket& socket, const std::string& request) {
    socket.send(request);
    std::string answer;
    while (http_answer_size(answer) == 0) socket.receive(answer);
    return answer;
}

std::string name_of(int number) { return fmt::format("crowd/{}", number); }

void hold_many(std::uint16_t port) {
    const Socket socket(port);
    for (int first = 0; first < held_locks; first += at_once) {
        std::string body;
        for (int i = first; i < first + at_once; ++i)
            body += fmt::format(R"({}{{"op":"acquire","name":"{}","ttl_ms":36000000,"holder":"crowd"}})",
                                i == first ? "" : ",", name_of(i));
        (void)asked(socket, http_post("/v1/batch", fmt::format(R"({{"requests":[{}]}})", body)));
    }
}

/// Connections on which answers are awaited, and read away. In life they are on other machines; so here the reading
/// gives way to the requests that are measured.
class Crowd {
public:
    Crowd(std::uint16_t port, const std::function<std::string(int)>& request) {
        for (int i = 0; i < crowd; ++i) {
            sockets_.push_back(std::make_unique<Socket>(port));
            sockets_.back()->send(request(i));
            fcntl(sockets_.back()->fd(), F_SETFL, O_NONBLOCK);
        }
        reader_ = std::jthread([this](const std::stop_token& stop) { read_until(stop); });
    }

private:
    void read_until(const std::stop_token& stop) const {
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
        const base::Fd ready(epoll_create1(EPOLL_CLOEXEC));
        for (const auto& socket : sockets_) {
            epoll_event wanted{.events = EPOLLIN, .data = {.fd = socket->fd()}};
            epoll_ctl(ready.get(), EPOLL_CTL_ADD, socket->fd(), &wanted);
        }
        std::array<epoll_event, 256> events{};
        std::array<char, 1 << 16> buffer{};
        while (!stop.stop_requested()) {
            const int count = epoll_wait(ready.get(), events.data(), static_cast<int>(events.size()), 100);
            for (int i = 0; i < count; ++i)
                if (recv(events[static_cast<std::size_t>(i)].data.fd, buffer.data(), buffer.size(), 0) == 0)
                    give_up("one of the crowd was cut");
        }
    }

    std::vector<std::unique_ptr<Socket>> sockets_{};
    std::jthread reader_{};
};

/// Of single requests, one after the other, in milliseconds.
double p99_of(std::uint16_t port, const std::function<std::string(int)>& request) {
    const Socket socket(port);
    std::vector<double> times;
    for (int i = 0; i < samples; ++i) {
        const auto began = steady_clock::now();
        (void)asked(socket, request(i));
        times.push_back(std::chrono::duration<double, std::milli>(steady_clock::now() - began).count());
    }
    return quantile(std::move(times), 0.99);
}

double p99_of_pairs(std::uint16_t port) {
    const std::string run = LockId::random().text();
    const std::string lease = Credentials::random().reveal();
    return p99_of(port, [&](int i) {
        const std::string body = fmt::format(R"({{"name":"{}/{}","lease":"{}"}})", run, i / 2, lease);
        return http_post(i % 2 == 0 ? "/v1/acquire" : "/v1/release", body);
    });
}

double p99_of_looks(std::uint16_t port) {
    return p99_of(port, [](int i) {
        return fmt::format("GET /v1/lock?name={} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", name_of(i));
    });
}

double megabytes_of(pid_t pid) {
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    for (std::string word; status >> word;)
        if (double kilobytes = 0; word == "VmRSS:" && status >> kilobytes) return kilobytes / 1000;
    give_up("the daemon is gone");
}

void raise_descriptor_limit() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

std::vector<Line> measure_daemon_crowd(const Site& site) {
    raise_descriptor_limit();
    const auto idle = tests::start_daemon();
    const auto busy = tests::start_daemon();
    hold_many(busy->port());
    const Crowd waiters(busy->port(), [](int i) {
        return http_post("/v1/acquire", fmt::format(R"({{"name":"{}","wait_ms":3600000}})", name_of(i)));
    });
    const Crowd readers(busy->port(), [](int) {
        return std::string("GET /v1/events?since=end HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n");
    });
    const std::array contenders{Contender{"idle daemon", [&] { return p99_of_pairs(idle->port()); }},
                                Contender{"crowded", [&] { return p99_of_pairs(busy->port()); }},
                                Contender{"idle daemon", [&] { return p99_of_looks(idle->port()); }},
                                Contender{"crowded", [&] { return p99_of_looks(busy->port()); }},
                                Contender{"limit", [] { return most_megabytes; }},
                                Contender{"crowded", [&] { return megabytes_of(busy->pid()); }}};
    const auto series = alternate("P11", contenders, site.rounds);
    return {{"P11", "p99 of an acquire or release", "ms", contenders[0].name, series[0], series[1], Goal{2.0}},
            {"P11", "p99 of a look at a lock", "ms", contenders[2].name, series[2], series[3], Goal{2.0}},
            {"P11", "memory", "MB", contenders[4].name, series[4], series[5], Goal{1.0}}};
}

}  // namespace holdfast::bench
