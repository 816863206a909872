#include "stores/redis/audit_log.hpp"

#include "stores/common/sealed.hpp"

#include <algorithm>

namespace holdfast::stores::redis {

Result<AuditLog::Events> AuditLog::range(const std::string& from, const std::string& to) {
    const auto answer = remote_.server().ask({"LRANGE", key_, from, to}, deadline_);
    if (!answer) return std::unexpected(answer.error());
    Events events;
    events.reserve(answer->value().size());
    for (std::size_t i = 0; i < answer->value().size(); ++i) {
        auto event = unsealed_event(answer->value()[i].bytes());
        if (!event) return std::unexpected(event.error());
        if (event->name != name_) return fail(Errc::record_corrupt, "an event of the audit log is of another lock");
        events.push_back(std::move(*event));
    }
    return events;
}

Result<AuditLog::Events> AuditLog::around(std::uint64_t seq, std::size_t before, std::size_t behind) {
    if (front_ && *front_ <= seq) {
        const std::uint64_t index = seq - *front_;
        const std::uint64_t from = index - std::min<std::uint64_t>(index, before);
        auto found = range(std::to_string(from), std::to_string(index + behind));
        if (!found) return found;
        if (index - from < found->size() && (*found)[index - from].seq == seq) return found;
    }
    const auto earlier = front_;
    const auto first = oldest(1);
    if (!first) return first;
    const auto last = newest(1);
    if (!last) return last;
    if (first->empty() || last->empty() || seq < first->front().seq || seq > last->front().seq) return Events{};
    front_ = first->front().seq;
    if (front_ == earlier) return range("0", "-1");
    return around(seq, before, behind);
}

Result<void> add_log(Remote& remote, const LockName& name, Deadline deadline, Traces& traces) {
    const std::string key = remote.keys().audit(name);
    for (const auto& [place, event] : {std::pair("0", &traces.oldest), std::pair("-1", &traces.newest)}) {
        const auto answer = remote.server().ask({"LRANGE", key, place, place}, deadline);
        if (!answer) return std::unexpected(answer.error());
        if (answer->value().size() == 0) return {};
        const auto bytes = answer->value()[0].bytes();
        event->emplace(bytes.begin(), bytes.end());
    }
    const auto length = remote.server().ask({"LLEN", key}, deadline);
    if (!length) return std::unexpected(length.error());
    // Numbers have no gaps, so the last one is known even if its event cannot be read.
    const auto oldest = unsealed_event(*traces.oldest);
    traces.seq = length->value().number().value_or(0) + (oldest ? oldest->seq - 1 : 0);
    return {};
}

}  // namespace holdfast::stores::redis
