#include "stores/etcd/gateway.hpp"

#include "stores/etcd/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

/// etcd itself gives up after seven seconds, which is longer than many a lease.
constexpr milliseconds longest_call{2000};
constexpr milliseconds longest_silence{10'000};
constexpr milliseconds passed_over_for{5000};
constexpr std::size_t most_idle = 64;

namespace grpc {
constexpr int invalid_argument = 3;
constexpr int permission_denied = 7;
constexpr int resource_exhausted = 8;
constexpr int failed_precondition = 9;
constexpr int unauthenticated = 16;
}  // namespace grpc

/// Counted in real time: a clock that stands still must not keep a call waiting for ever.
Boottime real_time() { return host_clock().boottime(); }

bool is_full(const Refusal& refusal) {
    return refusal.code == grpc::resource_exhausted && refusal.text.find("space") != std::string::npos;
}

/// etcd refuses before it does anything, or it has tried and cannot say.
bool is_certain(const Refusal& refusal) {
    return refusal.code == grpc::invalid_argument || refusal.code == grpc::permission_denied ||
           refusal.code == grpc::resource_exhausted || refusal.code == grpc::failed_precondition;
}

bool needs_login(const Refusal& refusal) {
    if (refusal.code == grpc::unauthenticated) return true;
    // Without a token; with one from before the users or roles were changed.
    return refusal.code == grpc::invalid_argument && (refusal.text.find("user name is empty") != std::string::npos ||
                                                      refusal.text.find("auth store is old") != std::string::npos);
}

bool has_no_leader(const Refusal& refusal) { return refusal.text.find("no leader") != std::string::npos; }

}  // namespace

Patience::Patience(const Clock& clock, Deadline deadline)
    : clock_(clock), deadline_(deadline), silent_since_(real_time()) {}

milliseconds Patience::left() const {
    return std::min(deadline_.remaining(clock_), silent_since_ + longest_silence - real_time());
}

void Patience::answered() { silent_since_ = real_time(); }

void Patience::pause(int attempts) const {
    thread_local std::minstd_rand random(std::random_device{}());
    const int most = std::min(5 << std::min(attempts, 5), 150);
    const milliseconds time{std::uniform_int_distribution<int>(1, most)(random)};
    std::this_thread::sleep_for(std::clamp(left(), milliseconds{0}, time));
}

/// How asking one endpoint ended.
struct Gateway::Attempt {
    enum class End {
        answered,
        refused,      ///< For a reason that every endpoint would give.
        unreachable,  ///< Nothing was sent.
        busy,         ///< It is there, and did nothing.
        in_doubt,     ///< It may have done what it was asked.
    };
    End end = End::unreachable;
    Answer answer{};
    Error error{Errc::store_unavailable, ""};
    bool needs_login = false;
};

Result<Gateway::Answer> Gateway::call(std::string_view path, const std::string& body, Patience& patience) {
    using End = Attempt::End;
    Error last{Errc::store_unavailable, "the time was over before etcd could be asked"};
    bool in_doubt = false;
    bool logged_in = false;
    const auto give_up = [&]() -> Result<Answer> {
        if (in_doubt) last = {Errc::outcome_unknown, last.message + "; whether it did what it was asked is not known"};
        return std::unexpected(last);
    };
    const auto time = [&] { return std::min(longest_call, patience.left()); };

    if (auto may = attempts_.wait(patience.left()); !may) return std::unexpected(may.error());
    for (int round = 0;; ++round) {
        bool somebody_is_there = false;
        for (const std::size_t endpoint : order()) {
            if (patience.over()) return give_up();
            Attempt made = attempt(endpoint, path, body, time());
            if (made.needs_login && !logged_in) {
                logged_in = true;
                made = log_in(endpoint, time());
                if (made.end == End::answered) made = attempt(endpoint, path, body, time());
            }
            if (made.end == End::answered) {
                prefer(endpoint);
                attempts_.succeeded();
                patience.answered();
                made.answer.maybe_repeated = made.answer.maybe_repeated || in_doubt;
                return std::move(made.answer);
            }
            last = std::move(made.error);
            if (made.end == End::refused) return give_up();
            pass_over(endpoint);
            in_doubt = in_doubt || made.end == End::in_doubt;
            somebody_is_there = somebody_is_there || made.end != End::unreachable;
        }
        // Nobody listens anywhere: there is nothing to wait for, unless somebody may have acted before.
        if (!somebody_is_there && !in_doubt) {
            attempts_.failed(last);
            return give_up();
        }
        patience.pause(round);
    }
}

Result<Gateway::Answer> Gateway::call_one(std::size_t endpoint, std::string_view path, const std::string& body,
                                          milliseconds timeout) {
    timeout = std::min(timeout, longest_call);
    Attempt made = attempt(endpoint, path, body, timeout);
    if (made.needs_login) {
        made = log_in(endpoint, timeout);
        if (made.end == Attempt::End::answered) made = attempt(endpoint, path, body, timeout);
    }
    if (made.end != Attempt::End::answered) return std::unexpected(std::move(made.error));
    return std::move(made.answer);
}

Gateway::Attempt Gateway::attempt(std::size_t endpoint, std::string_view path, const std::string& body,
                                  milliseconds timeout) {
    using End = Attempt::End;
    auto http = take_http();
    auto heard = http->post(fmt::format("{}{}", address_.endpoints[endpoint].url, path), body, token(), timeout);
    give_back(std::move(http));

    Attempt made;
    if (!heard) {
        made.end = heard.error().sent ? End::in_doubt : End::unreachable;
        made.error = trouble(Errc::store_unavailable, endpoint, heard.error().what);
        return made;
    }
    if (heard->status == 200) {
        made.end = End::answered;
        made.answer = {std::move(heard->body), heard->date, heard->maybe_repeated};
        return made;
    }
    const Refusal refusal = read_refusal(heard->body);
    made.end = is_certain(refusal) ? End::refused : has_no_leader(refusal) ? End::busy : End::in_doubt;
    made.needs_login = needs_login(refusal) && !address_.user.empty();
    if (needs_login(refusal)) made.end = End::refused;
    const bool may_not = refusal.code == grpc::permission_denied || needs_login(refusal);
    made.error =
        is_full(refusal)
            ? trouble(Errc::store_unavailable, endpoint,
                      "its database is full (the alarm NOSPACE is raised), so it refuses every change; compact and "
                      "defragment it, then disarm the alarm")
            : trouble(may_not ? Errc::denied : Errc::store_unavailable, endpoint,
                      refusal.text.empty() ? fmt::format("HTTP status {}", heard->status) : refusal.text);
    return made;
}

Gateway::Attempt Gateway::log_in(std::size_t endpoint, milliseconds timeout) {
    {
        // An old token would be refused here, too.
        const std::scoped_lock lock(mutex_);
        token_.clear();
    }
    Attempt made = attempt(endpoint, "/v3/auth/authenticate", login_text(address_.user, address_.password), timeout);
    made.needs_login = false;
    if (made.end == Attempt::End::answered) {
        const std::scoped_lock lock(mutex_);
        token_ = read_token(made.answer.body);
    }
    if (made.end == Attempt::End::refused) made.error.code = Errc::denied;
    // Nothing that this does is a change of the store.
    if (made.end == Attempt::End::in_doubt) made.end = Attempt::End::busy;
    return made;
}

std::vector<std::size_t> Gateway::order() const {
    const std::scoped_lock lock(mutex_);
    const Boottime now = real_time();
    std::vector<std::size_t> endpoints;
    for (std::size_t i = 0; i < address_.endpoints.size(); ++i)
        endpoints.push_back((preferred_ + i) % address_.endpoints.size());
    std::ranges::stable_partition(endpoints, [&](std::size_t one) { return passed_over_until_[one] <= now; });
    return endpoints;
}

std::size_t Gateway::preferred() const { return order().front(); }

void Gateway::prefer(std::size_t endpoint) {
    const std::scoped_lock lock(mutex_);
    preferred_ = endpoint;
    passed_over_until_[endpoint] = {};
}

void Gateway::pass_over(std::size_t endpoint) {
    const std::scoped_lock lock(mutex_);
    passed_over_until_[endpoint] = real_time() + passed_over_for;
}

std::string Gateway::token() const {
    const std::scoped_lock lock(mutex_);
    return token_;
}

std::unique_ptr<Http> Gateway::take_http() {
    {
        const std::scoped_lock lock(mutex_);
        if (!idle_.empty()) {
            auto http = std::move(idle_.back());
            idle_.pop_back();
            return http;
        }
    }
    return std::make_unique<Http>(address_.ca_file);
}

void Gateway::give_back(std::unique_ptr<Http> http) {
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < most_idle) idle_.push_back(std::move(http));
}

Error Gateway::trouble(Errc code, std::size_t endpoint, std::string_view what) const {
    std::string text = fmt::format("etcd at {}: {}", address_.endpoints[endpoint].name, what);
    // Neither etcd nor libcurl repeats a password today.
    constexpr std::string_view instead = "***";
    const std::string& password = address_.password;
    if (!password.empty())
        for (auto at = text.find(password); at != std::string::npos; at = text.find(password, at + instead.size()))
            text.replace(at, password.size(), instead);
    return {code, std::move(text)};
}

}  // namespace holdfast::stores::etcd
