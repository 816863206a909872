#include "server/daemon.hpp"

#include "base/loopback.hpp"
#include "server/event_stream.hpp"
#include "server/events.hpp"
#include "server/figures/daemon_metrics.hpp"
#include "server/origin.hpp"
#include "server/router.hpp"
#include "server/server.hpp"
#include "server/service_manager.hpp"
#include "server/upkeep.hpp"
#include "server/waiting.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <malloc.h>
#include <sys/resource.h>

namespace holdfast::server {
namespace {

constexpr std::size_t batch_threads = 4;
constexpr std::size_t reader_threads = 4;
constexpr std::size_t most_waiting_reads = 1'000;
constexpr std::chrono::milliseconds look_for_the_end{20};
constexpr std::chrono::milliseconds look_at_tokens{1'000};

/// A connection is a descriptor, and the usual limit is a thousand.
void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

Result<void> check(const ServeOptions& options, const Authorizer& authorizer) {
    if (auto address = check_address(options.listen); !address) return address;
    if (options.tls_cert.empty() != options.tls_key.empty())
        return fail(Errc::config, "--tls-cert and --tls-key belong together");
    const bool is_safe = !options.tls_cert.empty() && authorizer.demands_proof();
    if (!base::is_loopback(host_of(options.listen)) && !is_safe)
        return fail(
            Errc::config,
            fmt::format("{} can be reached from other hosts, so it needs TLS (--tls-cert, --tls-key) and tokens "
                        "(--token-file); without them, listen on 127.0.0.1",
                        options.listen));
    return {};
}

Result<void> write_port(const std::string& path, std::uint16_t port) {
    if (path.empty()) return {};
    // Renamed into place, so that a reader sees nothing or all of it.
    const std::string draft = path + ".new";
    std::ofstream(draft) << port << '\n';
    if (std::rename(draft.c_str(), path.c_str()) != 0)
        return fail(Errc::config, fmt::format("--port-file {} cannot be written", path));
    return {};
}

/// Everything that a running daemon consists of.
class Daemon {
public:
    Daemon(Store& store, const Clock& clock, const ServeOptions& options, std::unique_ptr<Authorizer> authorizer)
        : options_(options),
          observer_(options.version, {.most = options.metrics_locks, .without = options.metrics_without}),
          log_(clock, options.log),
          authorizer_(std::move(authorizer)),
          loop_(asio_loop(context_)),
          batch_workers_(batch_threads, batch_threads),
          readers_(reader_threads, most_waiting_reads),
          batcher_(*loop_, batch_workers_, store, observer_,
                   {.waiting = options.limits.queue, .batch = options.limits.batch, .under_way = batch_threads}),
          services_{store,        clock,     options,   *loop_, readers_, batcher_,
                    *authorizer_, observer_, observer_, log_,   waiting_, events_},
          waiting_(services_),
          events_(services_),
          host_{context_,
                options.limits,
                clock,
                !options.tls_cert.empty(),
                [this](const ExchangePtr& exchange) { dispatch(services_, exchange); },
                [this](const Exchange& exchange, int status, std::chrono::microseconds time) {
                    answered(exchange, status, time);
                }},
          listener_(host_, observer_) {}

    Result<void> run(const std::optional<InheritedSocket>& inherited) {
        batcher_.on_applied([this] { events_.poke(); });
        if (auto checked = check(options_, *authorizer_); !checked) return checked;
        // Now, so that the first request does not have to wait for it, and its id is known.
        if (auto created = services_.store.apply({}, Deadline::in(services_.clock, options_.patience)); !created)
            return std::unexpected(created.error());
        std::unique_ptr<asio::ssl::context> tls;
        if (host_.is_tls) {
            auto made = tls_context(options_.tls_cert, options_.tls_key);
            if (!made) return std::unexpected(made.error());
            tls = std::move(*made);
        }
        if (auto opened = inherited ? listener_.adopt(inherited->descriptor, tls.get())
                                    : listener_.open(options_.listen, tls.get());
            !opened)
            return opened;
        if (auto written = write_port(options_.port_file, listener_.port()); !written) return written;
        const std::string url = fmt::format("{}://{}:{}", tls ? "https" : "http",
                                            options_.listen.substr(0, options_.listen.rfind(':')), listener_.port());
        log_.write("listening",
                   {{"url", json::Value::text(url)}, {"port", json::Value::number(std::uint64_t{listener_.port()})}});
        if (options_.listening) options_.listening(url);
        notify_manager(fmt::format("READY=1\nSTATUS=listening on {}", url));
        Upkeep upkeep(services_.store, observer_, log_,
                      {.sweep_every = options_.sweep_every,
                       .keep = options_.keep,
                       .actor = "holdfast serve on " + Holder::this_process().display()});
        if (authorizer_->demands_proof()) watch_token_file();
        const std::stop_callback stopper(options_.stop, [this] { loop_->post([this] { stop(); }); });
        context_.run();
        log_.write("stopped");
        return {};
    }

private:
    void answered(const Exchange& exchange, int status, std::chrono::microseconds time) {
        observer_.answered(exchange.request.method, exchange.route, status, time);
        if (!options_.logs_requests && status < 500) return;
        log_.write("request", {{"method", json::Value::text(exchange.request.method)},
                               {"path", json::Value::text(exchange.request.path)},
                               {"status", json::Value::number(std::int64_t{status})},
                               {"duration_us", json::Value::number(std::int64_t{time.count()})},
                               {"user", json::Value::text_or_null(exchange.who.user)},
                               {"peer", json::Value::text(exchange.request.peer)}});
    }

    /// Says once that nobody is let in, and once that it is over.
    void watch_token_file() {
        const auto problem = authorizer_->door().problem();
        if (problem.has_value() != is_token_file_broken_)
            log_.write(problem ? "token_file_failed" : "token_file_read",
                       {{"error", problem ? json::Value::text(problem->message) : json::Value()}});
        is_token_file_broken_ = problem.has_value();
        token_look_ = loop_->after(look_at_tokens, [this] { watch_token_file(); });
    }

    /// Nothing new is taken; what is under way has the grace to end.
    void stop() {
        services_.is_stopping = true;
        log_.write("stopping");
        notify_manager("STOPPING=1");
        waiting_.stop();
        events_.stop();
        listener_.stop();
        grace_ = loop_->after(options_.stop_grace, [this] { listener_.abort_all(); });
        wait_for_the_end();
    }

    void wait_for_the_end() {
        if (!listener_.is_empty() || !batcher_.is_idle() || !waiting_.is_empty()) {
            poll_ = loop_->after(look_for_the_end, [this] { wait_for_the_end(); });
            return;
        }
        grace_.reset();
        context_.stop();
    }

    const ServeOptions& options_;
    DaemonMetrics observer_;
    Log log_;
    std::unique_ptr<Authorizer> authorizer_;
    // Destroyed after all that its handlers refer to.
    asio::io_context context_{1};
    std::unique_ptr<Loop> loop_;
    Workers batch_workers_;
    Workers readers_;
    Batcher batcher_;
    Services services_;
    WaitingRoom waiting_;
    EventFeed events_;
    ConnectionHost host_;
    Listener listener_;
    Loop::Timer grace_{};
    Loop::Timer poll_{};
    Loop::Timer token_look_{};
    bool is_token_file_broken_ = false;
};

}  // namespace

Result<void> run_daemon(Store& store, const Clock& clock, const ServeOptions& options) {
    // The command has one arena, because its threads hardly allocate. These do.
    mallopt(M_ARENA_MAX, static_cast<int>(batch_threads));
    raise_descriptor_limit();
    const auto inherited = take_inherited_socket();
    if (!inherited) return std::unexpected(inherited.error());
    ServeOptions here = options;
    if (*inherited) here.listen = (*inherited)->address;
    auto authorizer = Authorizer::create(here, clock);
    if (!authorizer) return std::unexpected(authorizer.error());
    store.serve_others();
    auto daemon = std::make_unique<Daemon>(store, clock, here, std::move(*authorizer));
    return daemon->run(*inherited);
}

}  // namespace holdfast::server
