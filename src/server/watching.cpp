// POST /v1/wait: many watches of one client, answered when the first of them fires.
#include "json/error.hpp"
#include "json/fields.hpp"
#include "json/lock.hpp"
#include "server/handlers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::server {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_watches = 10'000;
constexpr milliseconds longest_poll{60'000};

struct Wanted {
    std::vector<Watch> watches{};
    milliseconds timeout{0};
};

Result<Watch> read_watch(const json::Node& node, std::size_t at, const Identity& who) {
    json::Fields in(node, fmt::format("watches[{}]", at));
    const auto name = in.parsed<LockName>("name");
    const auto seen = in.number_if("seen_seq");
    const auto ticket = in.parsed_if<LockId>("ticket");
    const auto lease = in.parsed_if<LockId>("lease_id");
    if (ticket && lease) in.refuse("ticket", "does not go with lease_id");
    in.refuse_others();
    if (in.error()) return std::unexpected(*in.error());
    if (auto allowed = permit(who, Role::viewer, *name); !allowed) return std::unexpected(allowed.error());
    Watch watch{*name};
    watch.seen_seq = seen.value_or(0);
    watch.ticket = ticket;
    watch.lease = lease;
    return watch;
}

Result<Wanted> read_wanted(const Services& services, const Exchange& exchange) {
    const auto document = json::parse(exchange.request.body, {.bytes = services.options.limits.body});
    if (!document) return std::unexpected(document.error());
    json::Fields in(*document);
    const json::Node::Array& items = in.array("watches");
    Wanted wanted{.timeout = std::min(in.duration_if("timeout_ms").value_or(longest_poll), longest_poll)};
    if (items.size() > most_watches) in.refuse("watches", fmt::format("are more than {}", most_watches));
    in.refuse_others();
    if (in.error()) return std::unexpected(*in.error());
    for (const json::Node& item : items) {
        auto watch = read_watch(item, wanted.watches.size(), exchange.who);
        if (!watch) return std::unexpected(watch.error());
        wanted.watches.push_back(std::move(*watch));
    }
    return wanted;
}

/// One client's call. Lives as long as its subscriptions, which live as long as it.
class Poll : public std::enable_shared_from_this<Poll> {
public:
    Poll(Services& services, ExchangePtr exchange) : services_(services), exchange_(std::move(exchange)) {}

    void start(const Wanted& wanted) {
        exchange_->on_gone([self = shared_from_this()] { self->end(); });
        timer_ = services_.loop.after(wanted.timeout, [self = shared_from_this()] { self->answer(); });
        for (const Watch& watch : wanted.watches) names_.push_back(watch.name);
        subscriptions_.resize(wanted.watches.size());
        for (std::size_t i = 0; i < wanted.watches.size(); ++i) {
            // Called by the store's thread, perhaps before this returns.
            auto subscribed = services_.store.subscribe(
                wanted.watches[i],
                [&loop = services_.loop, weak = weak_from_this(), i](Result<std::optional<HandedOn>> fired) {
                    loop.post([weak, i, fired = std::move(fired)]() mutable {
                        if (const auto self = weak.lock()) self->fired(i, std::move(fired));
                    });
                });
            if (!subscribed) return fired(i, std::unexpected(subscribed.error()));
            subscriptions_[i] = std::move(*subscribed);
        }
        if (wanted.watches.empty() || services_.is_stopping) answer();
    }

private:
    void fired(std::size_t index, Result<std::optional<HandedOn>> result) {
        if (is_over_) return;
        fired_.emplace_back(index, std::move(result));
        // What fires at the same time is answered together.
        if (fired_.size() == 1) services_.loop.post([self = shared_from_this()] { self->answer(); });
    }

    /// A token can be revoked, or be given less, while its owner waits.
    [[nodiscard]] Result<void> is_still_allowed() const {
        const auto who = services_.authorizer.again(exchange_->who);
        if (!who) return std::unexpected(who.error());
        for (const auto& [index, unused] : fired_)
            if (auto allowed = permit(*who, Role::viewer, names_[index]); !allowed) return allowed;
        return {};
    }

    void answer() {
        if (is_over_) return;
        if (auto allowed = is_still_allowed(); !allowed) return reply(reply_with(allowed.error()));
        std::vector<json::Value> items;
        for (const auto& [index, result] : fired_) {
            json::Object item;
            item.set("index", json::Value::number(std::uint64_t{index}));
            const bool is_handed_on = result && *result;
            // The watch says whose it is; everything else of the lock is read by /v1/lock.
            item.set("handed_on",
                     is_handed_on ? json::Value::text((*result)->lock.lease->lock_id.text()) : json::Value());
            if (!result) item.set("error", json::error_body(result.error(), "", std::nullopt).done());
            items.push_back(item.done());
        }
        reply({.body = json::Object().set("fired", json::Value::array(items)).done().written()});
    }

    void reply(HttpReply reply) {
        const auto exchange = exchange_;
        end();
        exchange->reply(std::move(reply));
    }

    void end() {
        const auto self = shared_from_this();
        is_over_ = true;
        timer_.reset();
        subscriptions_.clear();
    }

    Services& services_;
    ExchangePtr exchange_;
    bool is_over_ = false;
    Loop::Timer timer_{};
    std::vector<LockName> names_{};  ///< Of the watches.
    std::vector<std::unique_ptr<Subscription>> subscriptions_{};
    std::vector<std::pair<std::size_t, Result<std::optional<HandedOn>>>> fired_{};
};

}  // namespace

void handle_wait(Services& services, const ExchangePtr& exchange) {
    const auto wanted = read_wanted(services, *exchange);
    if (!wanted) return exchange->reply(reply_with(wanted.error()));
    std::make_shared<Poll>(services, exchange)->start(*wanted);
}

}  // namespace holdfast::server
