#pragma once

#include "base/fd.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::tests {

/// What becomes of a message that a client sends.
enum class Fate {
    lose_request,  ///< It never arrives, and the connection breaks.
    lose_reply,    ///< It arrives and is worked on; when the answer begins, it is dropped and the connection breaks.
    no_reply,      ///< It arrives, but neither its answer nor anything after it gets through. The connection stays.
    lose_server,   ///< As `lose_reply`, and then nobody listens any more until `come_back`.
};

/// What the way between clients and server is like.
struct Road {
    std::chrono::milliseconds delay{0};  ///< Of everything, there and back.
    bool holds_requests = false;         ///< As if packets were lost: it arrives when this is over, however late.
    bool holds_replies = false;
};

/// Stands between clients and a server on loopback, and loses what the test says, counted in messages and never in
/// time. A message is what a client sends before it waits for the server, however many pieces that takes on the way.
class Proxy {
public:
    explicit Proxy(std::uint16_t server_port);
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;
    ~Proxy();

    [[nodiscard]] std::uint16_t port() const { return port_; }

    /// Decides about the `count`-th message from now on, of any client, and those after it until there were `times`; 1
    /// is the next. Replaces what was arranged before.
    void arrange(std::uint64_t count, Fate fate, std::uint64_t times = 1);
    /// Decides about the first message whose answer comes when `is_done` says so, which is asked while the client
    /// waits for that answer: `lose_reply` or `lose_server`. Replaces what was arranged before.
    void arrange_when(std::function<bool()> is_done, Fate fate = Fate::lose_reply);
    /// From now on everything gets through.
    void arrange_nothing() { arrange(0, Fate::lose_reply); }
    /// Whether what was arranged has come to pass.
    [[nodiscard]] bool has_happened() const;
    /// How many messages came since the proxy exists.
    [[nodiscard]] std::uint64_t messages() const;
    /// Breaks all connections that there are. They are when this returns.
    void cut();
    /// Breaks them as a firewall does that has forgotten them: a client that sends on one is told at once that it is
    /// gone. They are when this returns.
    void reset();
    /// From now on. Connections can be made on any road, but what is said on them takes its time.
    void become(const Road& road);
    /// From now on `text` from clients is replaced by `instead`, which is as long: for answers that a server gives only
    /// in situations that nobody can bring about. Nothing is said wrongly any more when both are empty.
    void misquote(std::string text, std::string instead);
    /// From now on nobody listens, and all connections are broken. They are when this returns. In contrast to
    /// `lose_server` it waits for no answer, which a client without time may not wait for either.
    void leave();
    /// Listens again, on the same port.
    void come_back();

private:
    using Piece = std::vector<char>;
    struct Parcel {
        std::chrono::steady_clock::time_point due;
        Piece piece;  ///< Empty: the sender has gone.
    };
    struct Way {
        std::deque<Parcel> parcels{};
        bool ended = false;  ///< The sender has gone, and this is known or under way.
    };
    struct Link {
        base::Fd client;
        base::Fd server;
        Way requests{};
        Way replies{};
        bool client_spoke_last = false;
        std::optional<Fate> fate{};  ///< Of the message that is under way.
    };

    [[nodiscard]] static base::Fd listen_on(std::uint16_t port);
    void work(const std::stop_token& stop);
    void accept_one();
    // Each says whether the connection goes on.
    [[nodiscard]] bool from_client(Link& link, const Road& road);
    [[nodiscard]] bool from_server(Link& link, const Road& road);
    [[nodiscard]] bool deliver(Link& link, const Road& road) const;
    void misquote_in(Piece& piece) const;
    [[nodiscard]] int milliseconds_to_next_delivery(const Road& road) const;
    [[nodiscard]] std::optional<Fate> next_fate();
    [[nodiscard]] bool loses_reply(const Link& link);
    void nudge() const;
    /// Sets `order`, and waits until the thread has carried it out.
    void insist(bool& order);

    const std::uint16_t server_port_;
    base::Fd listening_;  ///< Of the thread alone, once it runs.
    base::Fd nudged_;
    std::uint16_t port_ = 0;
    std::list<Link> links_{};  ///< Of the thread alone.

    mutable std::mutex mutex_;
    std::uint64_t messages_ = 0;  ///< Guarded by mutex_.
    std::uint64_t until_ = 0;     ///< Guarded by mutex_. Messages left until the first that is arranged; 0: none is.
    std::uint64_t times_ = 0;     ///< Guarded by mutex_. How many of them are left.
    Fate arranged_ = Fate::lose_reply;  ///< Guarded by mutex_.
    std::function<bool()> is_done_{};   ///< Guarded by mutex_. Until it says so, `arranged_` waits.
    bool happened_ = false;             ///< Guarded by mutex_.
    bool cut_ = false;                  ///< Guarded by mutex_. All connections are to break.
    bool reset_ = false;                ///< Guarded by mutex_. And with a reset.
    bool leaves_ = false;               ///< Guarded by mutex_. Nobody is to listen any more.
    Road road_{};                       ///< Guarded by mutex_.
    std::string misquoted_{};           ///< Guarded by mutex_. Empty: nothing is.
    std::string instead_{};             ///< Guarded by mutex_.
    base::Fd new_listening_{};          ///< Guarded by mutex_.

    std::jthread thread_;
};

}  // namespace holdfast::tests
