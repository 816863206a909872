#include "stores/http/wait.hpp"

#include "stores/http/codec.hpp"
#include "stores/http/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <stdexcept>
#include <unordered_map>

namespace holdfast::stores::http {
namespace {

using std::chrono::milliseconds;

/// How long the daemon is asked to wait, and how much longer its answer may take.
constexpr milliseconds longest_wait{30'000};
constexpr milliseconds longest_delay{10'000};
/// A watch that the daemon waits for need not be looked at. That it fires is heard.
constexpr milliseconds no_look{std::chrono::hours{24}};
/// A look fails if the daemon is silent for so long.
constexpr milliseconds longest_silence{5000};
/// How many requests wait at the same time. With more, the smallest is asked again together with what is new.
constexpr std::size_t most_polls = 4;

class HttpWakeSource final : public WakeSource {
public:
    HttpWakeSource(const Clock& clock, Server& server) : clock_(clock), server_(server) {
        if (!multi_) throw std::runtime_error("libcurl cannot be used");
    }

    ~HttpWakeSource() override {
        while (!polls_.empty()) abort(polls_.begin());
    }

    /// The first look makes the daemon listen; it looks by itself after that.
    void add(std::span<const HubWatch> watches) override {
        for (const HubWatch& one : watches) waiters_.emplace(one.id, Waiter{.watch = one.watch});
    }

    void remove(std::span<const HubWatch> watches) override {
        for (const HubWatch& one : watches) {
            const auto found = waiters_.find(one.id);
            if (found == waiters_.end()) continue;
            if (Poll* const poll = found->second.poll; poll != nullptr && --poll->alive == 0) abort(poll->self);
            waiters_.erase(found);
        }
    }

    std::vector<Sighting> look(std::span<const HubWatch> watches) override {
        std::vector<Sighting> sightings(watches.size(), Sighting{.next_look = no_look});
        std::vector<std::uint64_t> to_ask;
        for (std::size_t i = 0; i < watches.size(); ++i) {
            Waiter& waiter = waiters_.at(watches[i].id);
            if (waiter.error)
                sightings[i].fired = std::unexpected(*waiter.error);
            else if (std::exchange(waiter.has_fired, false))
                sightings[i].fired = check_lock(waiter);
            else if (waiter.poll == nullptr)
                to_ask.push_back(watches[i].id);
        }
        if (!to_ask.empty()) ask(std::move(to_ask));
        return sightings;
    }

    Heard listen(milliseconds most) override {
        Heard heard;
        advance(heard.ids);
        if (!heard.ids.empty()) return heard;
        curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(most.count()), nullptr);
        advance(heard.ids);
        return heard;
    }

    void interrupt() override { curl_multi_wakeup(multi_.get()); }

private:
    /// One request that waits.
    struct Poll {
        explicit Poll(const Address& address) : transfer(address) {}

        HttpTransfer transfer;
        std::vector<std::uint64_t> ids{};  ///< In the order in which they were sent.
        std::size_t alive = 0;             ///< Of them; the others were removed.
        std::list<Poll>::iterator self{};
    };
    struct Waiter {
        Watch watch;
        Poll* poll = nullptr;
        int failures = 0;  ///< In a row.
        bool has_fired = false;
        bool is_handed_on = false;
        std::optional<Error> error{};
    };

    void ask(std::vector<std::uint64_t> ids) {
        if (polls_.size() >= most_polls) {
            const auto smallest = std::ranges::min_element(polls_, {}, &Poll::alive);
            for (const std::uint64_t id : smallest->ids)
                if (is_in(id, *smallest)) ids.push_back(id);
            abort(smallest);
        }
        Poll& poll = polls_.emplace_back(server_.address());
        poll.self = std::prev(polls_.end());
        poll.alive = ids.size();
        std::vector<Watch> watches;
        for (const std::uint64_t id : ids) {
            Waiter& waiter = waiters_.at(id);
            waiter.poll = &poll;
            watches.push_back(waiter.watch);
        }
        poll.ids = std::move(ids);
        poll.transfer.prepare({.path = "/v1/wait", .body = wait_body(watches, longest_wait)},
                              longest_wait + longest_delay, nullptr);
        curl_easy_setopt(poll.transfer.handle(), CURLOPT_PRIVATE, &poll);
        curl_multi_add_handle(multi_.get(), poll.transfer.handle());
        // So that it is sent before somebody sleeps.
        int running = 0;
        curl_multi_perform(multi_.get(), &running);
    }

    [[nodiscard]] bool is_in(std::uint64_t id, const Poll& poll) const {
        const auto found = waiters_.find(id);
        return found != waiters_.end() && found->second.poll == &poll;
    }

    /// libcurl closes its connection, by which the daemon knows that nobody waits any more.
    void abort(std::list<Poll>::iterator poll) {
        curl_multi_remove_handle(multi_.get(), poll->transfer.handle());
        for (const std::uint64_t id : poll->ids)
            if (is_in(id, *poll)) waiters_.at(id).poll = nullptr;
        polls_.erase(poll);
    }

    /// Lets libcurl work. Adds the watches to look at to `due`.
    void advance(std::vector<std::uint64_t>& due) {
        int running = 0;
        curl_multi_perform(multi_.get(), &running);
        int left = 0;
        while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
            if (message->msg != CURLMSG_DONE) continue;
            void* found = nullptr;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
            finish(*static_cast<Poll*>(found), message->data.result, due);
        }
    }

    /// Every watch of the poll is due: it has fired, or has to be asked for again.
    void finish(Poll& poll, CURLcode code, std::vector<std::uint64_t>& due) {
        const auto fired = fired_of(poll, code);
        for (const std::uint64_t id : poll.ids) {
            if (!is_in(id, poll)) continue;
            Waiter& waiter = waiters_.at(id);
            // The daemon may have been restarted. What it does not answer a second time is told.
            waiter.failures = fired ? 0 : waiter.failures + 1;
            if (!fired && (waiter.failures > 1 || fired.error().code != Errc::store_unavailable))
                waiter.error = fired.error();
            due.push_back(id);
        }
        if (fired)
            for (const FiredWatch& one : *fired) {
                if (!is_in(poll.ids[one.index], poll)) continue;
                Waiter& waiter = waiters_.at(poll.ids[one.index]);
                waiter.has_fired = true;
                waiter.is_handed_on = one.is_handed_on;
                waiter.error = one.error;
            }
        abort(poll.self);
    }

    [[nodiscard]] Result<std::vector<FiredWatch>> fired_of(Poll& poll, CURLcode code) const {
        const auto answer = poll.transfer.finish(code);
        if (!answer) return std::unexpected(not_reached(server_.address(), answer.error()));
        const Statement said = statement_of(server_.address(), *answer);
        if (!said.document) return std::unexpected(said.document.error());
        auto fired = read_fired(*said.document, poll.ids.size());
        if (!fired) return std::unexpected(not_understood(server_.address(), fired.error()));
        return fired;
    }

    /// What was handed on, as it is now. How old the daemon's own look is cannot be known from here, and a lease is
    /// counted from before the look that showed it.
    Result<std::optional<HandedOn>> check_lock(const Waiter& waiter) {
        if (!waiter.watch.ticket || !waiter.is_handed_on) return std::nullopt;
        const base::CallBudget budget(clock_, Deadline::never(), longest_silence);
        const Boottime before = clock_.boottime();
        auto status = read_status(server_, waiter.watch.name, budget);
        if (!status) return std::unexpected(status.error());
        return HandedOn::to(*waiter.watch.ticket, std::move(*status), before);
    }

    const Clock& clock_;
    Server& server_;
    const std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi_{curl_multi_init(), curl_multi_cleanup};
    std::list<Poll> polls_{};
    std::unordered_map<std::uint64_t, Waiter> waiters_{};
};

}  // namespace

std::unique_ptr<WakeSource> make_wake_source(const Clock& clock, Server& server) {
    return std::make_unique<HttpWakeSource>(clock, server);
}

}  // namespace holdfast::stores::http
