#include "support/servers/proxy.hpp"

#include "support/servers/loopback.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace holdfast::tests {
namespace {

base::Fd tcp_socket() { return base::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

/// Small pieces must not wait for each other.
void send_at_once(int socket) {
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

using Piece = std::vector<char>;
using std::chrono::steady_clock;

/// What is there; empty at the end.
Piece read_piece(int socket) {
    Piece piece(65536);
    const ssize_t size = recv(socket, piece.data(), piece.size(), 0);
    piece.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return piece;
}

bool write_piece(int socket, const Piece& piece) {
    for (std::size_t sent = 0; sent < piece.size();) {
        const ssize_t size = send(socket, piece.data() + sent, piece.size() - sent, MSG_NOSIGNAL);
        if (size <= 0) return false;
        sent += static_cast<std::size_t>(size);
    }
    return true;
}

/// Its other end gets a reset instead of an end.
void reset_when_closed(int socket) {
    const linger at_once{1, 0};
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace

base::Fd Proxy::listen_on(std::uint16_t port) {
    base::Fd listening = tcp_socket();
    const int on = 1;
    setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in address = loopback(port);
    if (bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listening.get(), 64) != 0)
        throw std::runtime_error("the proxy cannot listen");
    return listening;
}

Proxy::Proxy(std::uint16_t server_port)
    : server_port_(server_port), listening_(listen_on(0)), nudged_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

Proxy::~Proxy() {
    thread_.request_stop();
    nudge();
}

void Proxy::arrange(std::uint64_t count, Fate fate, std::uint64_t times) {
    const std::scoped_lock lock(mutex_);
    until_ = count;
    times_ = times;
    arranged_ = fate;
    is_done_ = nullptr;
    happened_ = false;
}

void Proxy::arrange_when(std::function<bool()> is_done, Fate fate) {
    const std::scoped_lock lock(mutex_);
    until_ = 0;
    arranged_ = fate;
    is_done_ = std::move(is_done);
    happened_ = false;
}

bool Proxy::has_happened() const {
    const std::scoped_lock lock(mutex_);
    return happened_;
}

std::uint64_t Proxy::messages() const {
    const std::scoped_lock lock(mutex_);
    return messages_;
}

void Proxy::cut() { insist(cut_); }

void Proxy::reset() { insist(reset_); }

void Proxy::leave() { insist(leaves_); }

void Proxy::insist(bool& order) {
    {
        const std::scoped_lock lock(mutex_);
        order = true;
    }
    nudge();
    const auto is_pending = [&] {
        const std::scoped_lock lock(mutex_);
        return order;
    };
    while (is_pending()) std::this_thread::yield();
}

void Proxy::become(const Road& road) {
    {
        const std::scoped_lock lock(mutex_);
        road_ = road;
    }
    nudge();
}

void Proxy::misquote(std::string text, std::string instead) {
    if (text.size() != instead.size()) throw std::invalid_argument("a misquotation is as long as what was said");
    const std::scoped_lock lock(mutex_);
    misquoted_ = std::move(text);
    instead_ = std::move(instead);
}

void Proxy::come_back() {
    base::Fd listening = listen_on(port_);
    {
        const std::scoped_lock lock(mutex_);
        new_listening_ = std::move(listening);
    }
    nudge();
}

void Proxy::nudge() const { eventfd_write(nudged_.get(), 1); }

void Proxy::work(const std::stop_token& stop) {
    Road road;
    while (!stop.stop_requested()) {
        std::vector<pollfd> ready{{listening_.get(), POLLIN, 0}, {nudged_.get(), POLLIN, 0}};
        for (const Link& link : links_) {
            ready.push_back({link.requests.ended ? -1 : link.client.get(), POLLIN, 0});
            ready.push_back({link.replies.ended ? -1 : link.server.get(), POLLIN, 0});
        }
        poll(ready.data(), ready.size(), milliseconds_to_next_delivery(road));
        eventfd_t ignored = 0;
        eventfd_read(nudged_.get(), &ignored);
        {
            const std::scoped_lock lock(mutex_);
            if (reset_)
                for (const Link& link : links_) reset_when_closed(link.client.get());
            if (std::exchange(cut_, false) || reset_ || leaves_) links_.clear();
            if (leaves_) listening_.reset();
            reset_ = false;
            leaves_ = false;
            road = road_;
            if (new_listening_) listening_ = std::move(new_listening_);
        }
        std::size_t i = 2;
        for (auto link = links_.begin(); link != links_.end(); i += 2) {
            // What the server said before the client went on comes first.
            const bool whole = (ready[i + 1].revents == 0 || from_server(*link, road)) &&
                               (ready[i].revents == 0 || from_client(*link, road)) && deliver(*link, road);
            link = whole ? std::next(link) : links_.erase(link);
        }
        if (ready[0].revents != 0) accept_one();
    }
}

int Proxy::milliseconds_to_next_delivery(const Road& road) const {
    auto next = steady_clock::time_point::max();
    for (const Link& link : links_) {
        const auto look = [&](const Way& way, bool holds) {
            if (!holds && !way.parcels.empty()) next = std::min(next, way.parcels.front().due);
        };
        look(link.requests, road.holds_requests);
        look(link.replies, road.holds_replies);
    }
    if (next == steady_clock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - steady_clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

bool Proxy::deliver(Link& link, const Road& road) const {
    const auto now = steady_clock::now();
    const auto deliver_on = [&](Way& way, int to) {
        for (; !way.parcels.empty() && way.parcels.front().due <= now; way.parcels.pop_front())
            if (way.parcels.front().piece.empty() || !write_piece(to, way.parcels.front().piece)) return false;
        return true;
    };
    return (road.holds_replies || deliver_on(link.replies, link.client.get())) &&
           (road.holds_requests || deliver_on(link.requests, link.server.get()));
}

void Proxy::accept_one() {
    Link link{.client = base::Fd(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)), .server = tcp_socket()};
    const sockaddr_in server = loopback(server_port_);
    // A server that is not there is one that refuses connections.
    if (!link.client || connect(link.server.get(), reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0)
        return;
    send_at_once(link.client.get());
    send_at_once(link.server.get());
    links_.push_back(std::move(link));
}

std::optional<Fate> Proxy::next_fate() {
    const std::scoped_lock lock(mutex_);
    ++messages_;
    if (until_ == 0 || --until_ > 0) return std::nullopt;
    if (--times_ > 0) until_ = 1;
    if (arranged_ == Fate::lose_request || arranged_ == Fate::no_reply) happened_ = true;
    return arranged_;
}

void Proxy::misquote_in(Piece& piece) const {
    const std::scoped_lock lock(mutex_);
    if (misquoted_.empty()) return;
    auto rest = std::ranges::subrange(piece);
    while (const auto found = std::ranges::search(rest, misquoted_)) {
        std::ranges::copy(instead_, found.begin());
        rest = {found.end(), piece.end()};
    }
}

bool Proxy::from_client(Link& link, const Road& road) {
    Piece piece = read_piece(link.client.get());
    misquote_in(piece);
    link.requests.ended = piece.empty();
    if (!piece.empty() && !link.client_spoke_last && !link.fate) link.fate = next_fate();
    link.client_spoke_last = true;
    if (link.fate == Fate::lose_request) return false;
    link.requests.parcels.push_back({steady_clock::now() + road.delay, std::move(piece)});
    return true;
}

bool Proxy::from_server(Link& link, const Road& road) {
    Piece piece = read_piece(link.server.get());
    link.replies.ended = piece.empty();
    link.client_spoke_last = false;
    if (!piece.empty() && link.fate == Fate::no_reply) return true;
    if (!piece.empty() && loses_reply(link)) return false;
    link.replies.parcels.push_back({steady_clock::now() + road.delay, std::move(piece)});
    return true;
}

bool Proxy::loses_reply(const Link& link) {
    std::function<bool()> is_done;
    std::optional<Fate> fate = link.fate;
    {
        const std::scoped_lock lock(mutex_);
        is_done = is_done_;
        if (is_done) fate = arranged_;
    }
    // Asked without the mutex, because it may take its time.
    if (is_done && !is_done()) return false;
    if (fate != Fate::lose_reply && fate != Fate::lose_server) return false;
    const std::scoped_lock lock(mutex_);
    is_done_ = nullptr;
    happened_ = true;
    // Before the connection ends, so that a client that reconnects finds no listener.
    if (fate == Fate::lose_server) {
        listening_.reset();
        cut_ = true;
        nudge();
    }
    return true;
}

}  // namespace holdfast::tests
