#include "stores/etcd/cluster.hpp"

#include "base/real_clock.hpp"
#include "stores/common/backoff.hpp"
#include "stores/etcd/wire/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

/// etcd itself gives up after seven seconds, which is longer than many a lease.
constexpr milliseconds longest_call{2000};
constexpr milliseconds passed_over_for{5000};
/// For each node.
constexpr std::size_t most_idle = 64;

namespace grpc {
constexpr int invalid_argument = 3;
constexpr int permission_denied = 7;
constexpr int resource_exhausted = 8;
constexpr int failed_precondition = 9;
constexpr int unauthenticated = 16;
}  // namespace grpc

/// Counted in real time: a clock that stands still must not keep a call waiting for ever.
Boottime real_time() { return base::real_clock().boottime(); }

bool is_full(const CallEnd& refusal) {
    return refusal.status == grpc::resource_exhausted && refusal.text.find("space") != std::string::npos;
}

/// True for refusals that etcd makes before it does anything. After others the outcome is unknown.
bool is_certain(const CallEnd& refusal) {
    return refusal.status == grpc::invalid_argument || refusal.status == grpc::permission_denied ||
           refusal.status == grpc::resource_exhausted || refusal.status == grpc::failed_precondition;
}

bool needs_login(const CallEnd& refusal) {
    if (refusal.status == grpc::unauthenticated) return true;
    // Without a token, or with a token from before a change of users or roles.
    return refusal.status == grpc::invalid_argument && (refusal.text.find("user name is empty") != std::string::npos ||
                                                        refusal.text.find("auth store is old") != std::string::npos);
}

bool has_no_leader(const CallEnd& refusal) { return refusal.text.find("no leader") != std::string::npos; }

}  // namespace

void pause_after(int attempts, const base::CallBudget& budget) {
    constexpr Backoff backoff{milliseconds{5}, milliseconds{150}};
    std::this_thread::sleep_for(std::min(budget.left(), backoff.pause(attempts)));
}

/// How asking one endpoint ended.
struct Cluster::Attempt {
    enum class End {
        answered,
        refused,      ///< Every endpoint would refuse for the same reason.
        unreachable,  ///< Nothing was sent.
        busy,         ///< It answered, and did nothing.
        in_doubt,     ///< It may have carried out the request.
    };
    End end = End::unreachable;
    Answer answer{};
    Instant date{};  ///< Of a request for the date.
    Error error{Errc::store_unavailable, ""};
    bool needs_login = false;
};

template <class Ask>
Cluster::Attempt Cluster::first_answer(base::CallBudget& budget, Ask ask) {
    using End = Attempt::End;
    Attempt last;
    last.error = {Errc::store_unavailable, "the time was over before etcd could be asked"};
    bool in_doubt = false;
    bool logged_in = false;
    const auto give_up = [&] {
        if (in_doubt)
            last.error = {Errc::outcome_unknown,
                          last.error.message + "; whether it did what it was asked is not known"};
        return std::move(last);
    };
    const auto time = [&] { return std::min(longest_call, budget.left()); };

    if (auto may = attempts_.wait(budget.left()); !may) {
        last.error = may.error();
        return last;
    }
    for (int round = 0;; ++round) {
        bool somebody_is_there = false;
        for (const std::size_t endpoint : order()) {
            if (budget.over()) return give_up();
            Attempt made = ask(endpoint, time());
            if (made.needs_login && !logged_in) {
                logged_in = true;
                made = log_in(endpoint, time());
                if (made.end == End::answered) made = ask(endpoint, time());
            }
            if (made.end == End::answered) {
                prefer(endpoint);
                attempts_.succeeded();
                budget.answered();
                made.answer.maybe_repeated = in_doubt;
                return made;
            }
            last = std::move(made);
            if (last.end == End::refused) return give_up();
            pass_over(endpoint);
            in_doubt = in_doubt || last.end == End::in_doubt;
            somebody_is_there = somebody_is_there || last.end != End::unreachable;
        }
        // No endpoint can be reached, so waiting is useless, unless an earlier copy of the request is in doubt.
        if (!somebody_is_there && !in_doubt) {
            attempts_.failed(last.error);
            return give_up();
        }
        pause_after(round, budget);
    }
}

Result<Cluster::Answer> Cluster::call(std::string_view method, std::string_view message, base::CallBudget& budget) {
    Attempt made = first_answer(budget, [&](std::size_t endpoint, milliseconds timeout) {
        return attempt(endpoint, method, message, timeout);
    });
    if (made.end != Attempt::End::answered) return std::unexpected(std::move(made.error));
    return std::move(made.answer);
}

Result<Cluster::Answer> Cluster::call_one(std::size_t endpoint, std::string_view method, std::string_view message,
                                          milliseconds timeout) {
    timeout = std::min(timeout, longest_call);
    Attempt made = attempt(endpoint, method, message, timeout);
    if (made.needs_login) {
        made = log_in(endpoint, timeout);
        if (made.end == Attempt::End::answered) made = attempt(endpoint, method, message, timeout);
    }
    if (made.end != Attempt::End::answered) return std::unexpected(std::move(made.error));
    return std::move(made.answer);
}

Result<Instant> Cluster::date(base::CallBudget& budget) {
    Attempt made = first_answer(
        budget, [&](std::size_t endpoint, milliseconds timeout) { return attempt_date(endpoint, timeout); });
    if (made.end != Attempt::End::answered) return std::unexpected(std::move(made.error));
    return made.date;
}

Result<Instant> Cluster::date_of(std::size_t endpoint, milliseconds timeout) {
    Attempt made = attempt_date(endpoint, std::min(timeout, longest_call));
    if (made.end != Attempt::End::answered) return std::unexpected(std::move(made.error));
    return made.date;
}

CallEnd Cluster::deliver(std::size_t endpoint, const Call& call, milliseconds timeout, std::string& message) {
    const Deadline deadline = Deadline::in(base::real_clock(), timeout);
    while (true) {
        auto taken = take_channel(endpoint, deadline.remaining(base::real_clock()));
        if (!taken.channel) return {.how = CallEnd::How::not_sent, .text = std::move(taken.error)};
        CallEnd end = taken.channel->call(call, deadline.remaining(base::real_clock()), message);
        if (end.how == CallEnd::How::answered) {
            give_back(endpoint, std::move(taken.channel));
            return end;
        }
        // The other idle connections are probably broken, too.
        forget_idle(endpoint);
        // A connection that was reset while idle says nothing about the server, and nothing was sent on it.
        if (end.how != CallEnd::How::not_sent || !taken.was_kept) return end;
    }
}

Cluster::Attempt Cluster::attempt(std::size_t endpoint, std::string_view method, std::string_view message,
                                  milliseconds timeout) {
    using End = Attempt::End;
    const std::string token = this->token();
    Attempt made;
    const CallEnd end = deliver(endpoint, {method, token, message}, timeout, made.answer.message);
    if (end.how != CallEnd::How::answered) {
        made.end = end.how == CallEnd::How::in_doubt  ? End::in_doubt
                   : end.how == CallEnd::How::refused ? End::busy
                                                      : End::unreachable;
        made.error = error_at(Errc::store_unavailable, endpoint, end.text);
        return made;
    }
    if (end.status == 0) {
        made.end = End::answered;
        return made;
    }
    made.end = is_certain(end) ? End::refused : has_no_leader(end) ? End::busy : End::in_doubt;
    made.needs_login = needs_login(end) && !address_.user.empty();
    if (needs_login(end)) made.end = End::refused;
    const bool may_not = end.status == grpc::permission_denied || needs_login(end);
    made.error =
        is_full(end)
            ? error_at(Errc::store_unavailable, endpoint,
                       "its database is full (the alarm NOSPACE is raised), so it refuses every change; compact and "
                       "defragment it, then disarm the alarm")
            : error_at(may_not ? Errc::denied : Errc::store_unavailable, endpoint,
                       end.text.empty() ? fmt::format("status {} of gRPC", end.status) : end.text);
    return made;
}

Cluster::Attempt Cluster::attempt_date(std::size_t endpoint, milliseconds timeout) {
    std::unique_ptr<Http> http;
    {
        const std::scoped_lock lock(mutex_);
        if (!idle_clocks_.empty()) {
            http = std::move(idle_clocks_.back());
            idle_clocks_.pop_back();
        }
    }
    if (!http) http = std::make_unique<Http>(address_.ca_file);
    const auto date = http->date(address_.endpoints[endpoint].url, timeout);
    Attempt made;
    if (date) {
        made.end = Attempt::End::answered;
        made.date = *date;
    } else {
        made.end = date.error().is_there ? Attempt::End::busy : Attempt::End::unreachable;
        made.error = error_at(Errc::store_unavailable, endpoint, date.error().what);
    }
    const std::scoped_lock lock(mutex_);
    if (idle_clocks_.size() < most_idle) idle_clocks_.push_back(std::move(http));
    return made;
}

Cluster::Attempt Cluster::log_in(std::size_t endpoint, milliseconds timeout) {
    {
        // Without a token: an old one would be refused here, too.
        const std::scoped_lock lock(mutex_);
        token_.clear();
    }
    Attempt made = attempt(endpoint, method::authenticate, login_message(address_.user, address_.password), timeout);
    made.needs_login = false;
    if (made.end == Attempt::End::answered) {
        const std::scoped_lock lock(mutex_);
        token_ = read_token(made.answer.message);
    }
    if (made.end == Attempt::End::refused) made.error.code = Errc::denied;
    // A login changes nothing in the store.
    if (made.end == Attempt::End::in_doubt) made.end = Attempt::End::busy;
    return made;
}

std::vector<std::size_t> Cluster::order() const {
    const std::scoped_lock lock(mutex_);
    const Boottime now = real_time();
    std::vector<std::size_t> endpoints;
    for (std::size_t i = 0; i < address_.endpoints.size(); ++i)
        endpoints.push_back((preferred_ + i) % address_.endpoints.size());
    std::ranges::stable_partition(endpoints, [&](std::size_t one) { return nodes_[one].passed_over_until <= now; });
    return endpoints;
}

std::size_t Cluster::preferred() const { return order().front(); }

void Cluster::prefer(std::size_t endpoint) {
    const std::scoped_lock lock(mutex_);
    preferred_ = endpoint;
    nodes_[endpoint].passed_over_until = {};
}

void Cluster::pass_over(std::size_t endpoint) {
    const std::scoped_lock lock(mutex_);
    nodes_[endpoint].passed_over_until = real_time() + passed_over_for;
}

std::string Cluster::token() const {
    const std::scoped_lock lock(mutex_);
    return token_;
}

Cluster::Taken Cluster::take_channel(std::size_t endpoint, milliseconds timeout) {
    while (auto kept = take_idle(endpoint))
        if (kept->is_open()) return {.channel = std::move(kept), .was_kept = true};
    auto opened = Channel::open(address_.endpoints[endpoint], address_.ca_file, timeout);
    if (!opened) return {.error = std::move(opened.error())};
    return {.channel = std::move(*opened)};
}

std::unique_ptr<Channel> Cluster::take_idle(std::size_t endpoint) {
    const std::scoped_lock lock(mutex_);
    auto& idle = nodes_[endpoint].idle;
    if (idle.empty()) return nullptr;
    auto channel = std::move(idle.back());
    idle.pop_back();
    return channel;
}

void Cluster::give_back(std::size_t endpoint, std::unique_ptr<Channel> channel) {
    const std::scoped_lock lock(mutex_);
    auto& idle = nodes_[endpoint].idle;
    if (idle.size() < most_idle) idle.push_back(std::move(channel));
}

void Cluster::forget_idle(std::size_t endpoint) {
    // Closed after the lock is released, so that no thread waits for it.
    std::vector<std::unique_ptr<Channel>> idle;
    const std::scoped_lock lock(mutex_);
    idle.swap(nodes_[endpoint].idle);
}

Error Cluster::error_at(Errc code, std::size_t endpoint, std::string_view what) const {
    const std::string text = fmt::format("etcd at {}: {}", address_.endpoints[endpoint].name, what);
    // Neither etcd nor a library repeats a password today.
    return {code, base::without_secret(text, address_.password)};
}

}  // namespace holdfast::stores::etcd
