#include "server/serve.hpp"

#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/signals.hpp"
#include "json/value.hpp"
#include "values/text.hpp"

#include <array>

namespace holdfast::cli {
namespace {

/// Of holdfast.toml.
constexpr std::string_view section = "server";

constexpr Option listen{{"listen", Takes::one, "127.0.0.1:7420", "", From::anywhere, section},
                        '\0',
                        "ADDRESS:PORT",
                        "Where to listen; port 0 takes a free one."};
constexpr Option host{{"host", Takes::many, "", "", From::anywhere, section},
                      '\0',
                      "NAME",
                      "A name by which clients call the daemon; may be repeated."};
constexpr Option tls_cert{
    {"tls-cert", Takes::one, "", "", From::anywhere, section}, '\0', "F", "The certificate, with its chain, as PEM."};
constexpr Option tls_key{
    {"tls-key", Takes::one, "", "", From::anywhere, section}, '\0', "F", "The certificate's key, as PEM."};
constexpr Option port_file{
    {"port-file", Takes::one, "", "", From::environment}, '\0', "F", "Write the port to this file."};
constexpr Option log_requests{{"log-requests", Takes::nothing, "", "", From::anywhere, section},
                              '\0',
                              "",
                              "A line of the log for every request."};
constexpr Option max_connections{
    {"max-connections", Takes::one, "10000", "", From::anywhere, section}, '\0', "N", "Connections at once."};
constexpr Option max_queue{{"max-queue", Takes::one, "10000", "", From::anywhere, section},
                           '\0',
                           "N",
                           "Requests that may wait for the store."};
constexpr Option max_batch{{"max-batch", Takes::one, "1000", "", From::anywhere, section},
                           '\0',
                           "N",
                           "Requests in one call of /v1/batch, and in one of the store."};
constexpr Option max_body{
    {"max-body", Takes::one, "1048576", "", From::anywhere, section}, '\0', "BYTES", "The longest body of a request."};
constexpr Option max_header{{"max-header", Takes::one, "16384", "", From::anywhere, section},
                            '\0',
                            "BYTES",
                            "The longest header of a request."};
constexpr Option max_stream_bytes{{"max-stream-bytes", Takes::one, "1048576", "", From::anywhere, section},
                                  '\0',
                                  "BYTES",
                                  "Events that may wait for one reader; a slower one is dropped."};
constexpr Option read_timeout{{"read-timeout", Takes::one, "10s", "", From::anywhere, section},
                              '\0',
                              "D",
                              "A request that takes longer to arrive is cut."};
constexpr Option idle_timeout{{"idle-timeout", Takes::one, "75s", "", From::anywhere, section},
                              '\0',
                              "D",
                              "How long a connection without a request is kept."};
constexpr Option write_timeout{{"write-timeout", Takes::one, "30s", "", From::anywhere, section},
                               '\0',
                               "D",
                               "A client that takes nothing of its answer for so long is cut."};
constexpr Option stop_grace{{"stop-grace", Takes::one, "10s", "", From::anywhere, section},
                            '\0',
                            "D",
                            "How long requests under way may go on after SIGTERM."};
constexpr Option trust_header{{"trust-header", Takes::one, "", "", From::anywhere, section},
                              '\0',
                              "NAME",
                              "The header in which a proxy of --trust-from names the user."};
constexpr Option trust_from{{"trust-from", Takes::many, "", "", From::anywhere, section},
                            '\0',
                            "CIDR",
                            "Where such a proxy is: an address or a network; may be repeated."};
constexpr Option keep{
    {"keep", Takes::one, "90d", "", From::environment}, '\0', "D", "Audit events that are older are removed; 0: none."};
constexpr Option sweep_every{{"sweep-every", Takes::one, "5s", "", From::anywhere, section},
                             '\0',
                             "D",
                             "How often leases that ran out are looked for."};
constexpr Option metrics_locks{{"metrics-locks", Takes::one, "100", "", From::anywhere, section},
                               '\0',
                               "N",
                               "So many locks have figures of their own: those held longest."};
constexpr Option metrics_without{{"metrics-without", Takes::many, "", "", From::anywhere, section},
                                 '\0',
                                 "PREFIX",
                                 "No figures of locks whose names begin so; may be repeated."};
constexpr std::array serve_options{
    opt::token_file, trust_header,    trust_from,   keep,       sweep_every,     metrics_locks,
    metrics_without, listen,          host,         tls_cert,   tls_key,         port_file,
    log_requests,    max_connections, max_queue,    max_batch,  max_body,        max_header,
    read_timeout,    write_timeout,   idle_timeout, stop_grace, max_stream_bytes};

constexpr std::uint64_t most = std::uint64_t{1} << 30;

/// Reads the settings that are numbers and times. The first that does not fit is the error of all.
class Reader {
public:
    explicit Reader(const Settings& settings) : settings_(settings) {}

    void number(const Option& option, std::size_t& into) { keep(settings_.number(option, most), into); }
    void duration(const Option& option, std::chrono::milliseconds& into) { keep(settings_.duration(option), into); }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

private:
    template <class Read, class Into>
    void keep(const Result<Read>& read, Into& into) {
        if (read)
            into = static_cast<Into>(*read);
        else if (!error_)
            error_ = read.error();
    }

    const Settings& settings_;
    std::optional<Error> error_{};
};

Result<server::ServeOptions> options_of(const Context& context) {
    const Settings& settings = context.settings;
    server::ServeOptions options;
    options.listen = settings.text(listen);
    options.hosts = settings.texts(host);
    options.tls_cert = settings.text(tls_cert);
    options.tls_key = settings.text(tls_key);
    options.token_file = settings.text(opt::token_file);
    options.trust_header = settings.text(trust_header);
    options.trust_from = settings.texts(trust_from);
    options.metrics_without = settings.texts(metrics_without);
    options.port_file = settings.text(port_file);
    options.logs_requests = settings.on(log_requests);
    options.version = HOLDFAST_VERSION;
    options.terms = [&settings](const LockName& name, const client::Wish& wish) {
        return settings.terms_for(name, wish);
    };
    Reader read(settings);
    read.number(max_connections, options.limits.connections);
    read.number(max_queue, options.limits.queue);
    read.number(max_batch, options.limits.batch);
    read.number(max_body, options.limits.body);
    read.number(max_header, options.limits.header);
    read.number(max_stream_bytes, options.limits.event_bytes);
    read.duration(read_timeout, options.limits.read_time);
    read.duration(write_timeout, options.limits.write_time);
    read.duration(idle_timeout, options.limits.idle_time);
    read.duration(stop_grace, options.stop_grace);
    read.duration(keep, options.keep);
    read.duration(sweep_every, options.sweep_every);
    read.number(metrics_locks, options.metrics_locks);
    if (read.error()) return std::unexpected(*read.error());
    return options;
}

Result<int> run(Context& context) {
    auto options = options_of(context);
    if (!options) return std::unexpected(options.error());
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());

    const StopOnSignal signals;
    options->stop = signals.token();
    options->log = [](std::string_view line) { Output::warn(line); };
    options->listening = [&context](const std::string& url) {
        if (context.out.style().json)
            context.out.document(json::Object().set("listening", json::Value::text(url)).done());
        else
            context.out.line("listening on " + url);
        (void)context.out.flush();
    };
    if (auto served = server::serve(**store, context.clock, *options); !served) return std::unexpected(served.error());
    return 0;
}

}  // namespace

constinit const Command serve_command{
    "serve",
    "",
    "Serve the store to other programs, with an HTTP API and a web console",
    "Listens on the loopback unless told otherwise, prints \"listening on URL\" and serves until SIGTERM or Ctrl-C; "
    "then it ends the requests that are under way. Keeps nothing of its own: it can be killed and started again, and "
    "several can serve one store. Any address but the loopback needs TLS and tokens. The log goes to standard error, "
    "one JSON document on each line.\n\n"
    "Example: holdfast serve --store postgres:///locks",
    {},
    serve_options,
    run,
    Tail::words,
    Loads::daemon};

}  // namespace holdfast::cli
