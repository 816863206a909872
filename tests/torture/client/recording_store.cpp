#include "torture/client/recording_store.hpp"

#include <fmt/format.h>

namespace torture {
namespace {

using namespace holdfast;

struct Described {
    std::string_view op{};
    std::string fields{};
};

std::string id_of(const Credentials& who) { return fmt::format(R"(,"id":"{}")", who.lock_id.text()); }

/// What the torture asks. Anything else would be missing in the history without notice, so it does not compile.
struct Describe {
    Described operator()(const Acquire& r) const {
        const std::int64_t ticket = r.ticket ? r.ticket->time().count() : 0;
        return {"acquire", id_of(r.as) + fmt::format(R"(,"ticket":{})", ticket)};
    }
    Described operator()(const Renew& r) const { return {"renew", id_of(r.as)}; }
    Described operator()(const Release& r) const { return {"release", id_of(r.as)}; }
    Described operator()(const Cancel& r) const { return {"cancel", id_of(r.as)}; }
    Described operator()(const Prune&) const { return {"prune", ""}; }
    Described operator()(const Repair&) const { return {"repair", ""}; }
    Described operator()(const Transfer& r) const {
        return {"transfer", id_of(r.as) + fmt::format(R"(,"to":"{}")", r.to_as.lock_id.text())};
    }
    Described operator()(const Break& r) const { return {"break", fmt::format(R"(,"id":"{}")", r.expected.text())}; }
    Described operator()(const Expire& r) const { return {"expire", fmt::format(R"(,"id":"{}")", r.lock_id.text())}; }
    Described operator()(const ReportFenced&) const { return {"fenced", ""}; }
    Described operator()(const Check&) const { return {"check", ""}; }
    Described operator()(const Ask& r) const { return {"ask", id_of(r.as)}; }
    Described operator()(const Answer&) const { return {"answer", ""}; }
};

std::string granted(const Outcome& outcome) {
    const auto& lease = outcome.lock.lease;
    return fmt::format(R"(,"tok":{},"rs":{})", lease ? lease->token.value : outcome.lock.token.value,
                       lease ? lease->renew_seq : 0);
}

}  // namespace

std::string because(const Error& error) { return fmt::format(R"(,"why":"{}")", row_of(error.code).name); }

std::string_view result_of(const Error& error) { return error.code == Errc::outcome_unknown ? "unknown" : "refused"; }

Result<std::vector<Reply>> RecordingStore::apply(std::span<const Request> requests, Deadline deadline) {
    std::vector<std::uint64_t> numbers;
    for (const Request& request : requests) {
        const Described described = std::visit(Describe{}, request);
        numbers.push_back(recorder_.begin(described.op, name_of(request).text(), described.fields));
    }
    auto replies = inner_.apply(requests, deadline);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (!replies)
            recorder_.end(numbers[i], result_of(replies.error()), because(replies.error()));
        else if (const Reply& reply = (*replies)[i]; reply)
            recorder_.end(numbers[i], "ok", granted(*reply));
        else
            recorder_.end(numbers[i], result_of(reply.error()), because(reply.error()));
    }
    return replies;
}

Result<std::optional<HandedOn>> RecordingStore::wait_for_change(const Watch& watch, Deadline deadline) {
    auto woken = inner_.wait_for_change(watch, deadline);
    if (!woken || !*woken) return woken;
    const std::string id = fmt::format(R"(,"id":"{}")", watch.ticket->text());
    const std::uint64_t number = recorder_.begin("handed", watch.name.text(), id);
    recorder_.end(number, "ok", granted({(*woken)->lock, std::nullopt}));
    return woken;
}

}  // namespace torture
