#include "checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace checker {
namespace {

using Key = std::tuple<Token, std::string, std::uint64_t>;

Key key_of(const Journal& entry) { return {entry.token, entry.id, entry.number}; }
Key key_of(const Op& op) { return {op.token, op.id, op.number}; }

/// Something completed at a moment, with a number of which only the highest so far matters.
struct Mark {
    Nanos at = 0;
    std::uint64_t height = 0;
    const Op* op = nullptr;
};

/// The highest mark before a moment.
class HighWater {
public:
    void add(const Mark& mark) { marks_.push_back(mark); }
    void settle() {
        std::ranges::sort(marks_, {}, &Mark::at);
        for (std::size_t i = 1; i < marks_.size(); ++i)
            if (marks_[i].height < marks_[i - 1].height)
                marks_[i] = {marks_[i].at, marks_[i - 1].height, marks_[i - 1].op};
    }
    [[nodiscard]] const Mark* before(Nanos moment) const {
        const auto after = std::ranges::lower_bound(marks_, moment, {}, &Mark::at);
        return after == marks_.begin() ? nullptr : &*std::prev(after);
    }

private:
    std::vector<Mark> marks_{};
};

class RegisterCheck {
public:
    RegisterCheck(const LockHistory& lock, Verdict& verdict) : lock_(lock), verdict_(verdict) {}

    void run() {
        walk();
        for (const Op& op : lock_.ops) collect(op);
        written_.settle();
        sealed_.settle();
        for (const Op& op : lock_.ops) {
            if (op.kind == "write") acknowledged(op);
            if (op.kind == "write" || op.kind == "read") real_time(op);
            if (op.kind == "write") stale(op);
        }
        for (const auto& [key, entry] : entries_)
            if (!asked_.contains(key)) flag("a write that nobody made", *entry, *entry);
    }

private:
    void flag(const std::string& what, const Journal& first, const Journal& second) {
        verdict_.flag("C5", lock_.name + ": " + what, first.line, second.line);
    }

    /// The journal alone: holders take turns, and each write builds on the one before.
    void walk() {
        const Journal* last = nullptr;
        for (const Journal& entry : lock_.journal) {
            if (entry.kind != "write") continue;
            const Journal& before = last == nullptr ? entry : *last;
            const std::uint64_t version = last == nullptr ? 0 : last->version;
            if (entry.version != version + 1) flag("a version is missing", before, entry);
            if (entry.token < before.token) flag("an older holder wrote after a newer one", before, entry);
            if (entry.token == before.token && entry.id != before.id)
                flag("two holders wrote under one token", before, entry);
            if (entry.base != version) {
                ++verdict_.counts["lost updates"];
                flag(fmt::format("lost update: version {} was computed from version {}", entry.version, entry.base),
                     before, entry);
            }
            const auto [other, fresh] = entries_.try_emplace(key_of(entry), &entry);
            if (!fresh) flag("one write was made twice", *other->second, entry);
            last = &entry;
        }
        verdict_.counts["writes in the journal"] += entries_.size();
    }

    void collect(const Op& op) {
        if (op.kind == "write" && op.ending != Ending::refused) asked_.emplace(key_of(op), &op);
        if (op.ending != Ending::ok) return;
        if (op.kind == "write") written_.add({op.ended, op.version, &op});
        if (op.kind == "seal") sealed_.add({op.ended, op.token, &op});
    }

    void acknowledged(const Op& op) {
        const auto found = entries_.find(key_of(op));
        const bool there = found != entries_.end();
        if (op.ending == Ending::ok && (!there || found->second->version != op.version))
            verdict_.flag("C5", lock_.name + ": an acknowledged write is not in the journal", op.line, op.end_line);
        if (op.ending == Ending::refused && there)
            verdict_.flag("C5", lock_.name + ": a refused write is in the journal", op.end_line, found->second->line);
        ++verdict_.counts[op.ending == Ending::ok        ? "writes acknowledged"
                          : op.ending == Ending::refused ? "writes refused"
                                                         : "writes unknown"];
    }

    void real_time(const Op& op) {
        const Mark* mark = written_.before(op.begun);
        if (op.ending != Ending::ok || mark == nullptr) return;
        const bool late = op.kind == "write" ? op.version <= mark->height : op.version < mark->height;
        if (late)
            verdict_.flag("C5",
                          fmt::format("{}: a {} of version {} began after version {} was complete", lock_.name, op.kind,
                                      op.version, mark->height),
                          mark->op->end_line, op.end_line);
    }

    void stale(const Op& op) {
        const Mark* seal = sealed_.before(op.begun);
        if (seal == nullptr || seal->height <= op.token) return;
        if (op.ending == Ending::refused) ++verdict_.counts["stale writes refused"];
        const auto found = entries_.find(key_of(op));
        if (op.ending == Ending::ok || found != entries_.end()) {
            ++verdict_.counts["stale writes accepted"];
            verdict_.flag("C6",
                          fmt::format("{}: a write with token {} was accepted after {} had sealed", lock_.name,
                                      op.token, seal->height),
                          seal->op->end_line, op.line);
        }
    }

    const LockHistory& lock_;
    Verdict& verdict_;
    std::map<Key, const Journal*> entries_{};
    std::map<Key, const Op*> asked_{};
    HighWater written_{};
    HighWater sealed_{};
};

}  // namespace

void check_register(const LockHistory& lock, Verdict& verdict) { RegisterCheck(lock, verdict).run(); }

void check_breaks(const LockHistory& lock, Verdict& verdict) {
    std::map<std::string, const Op*> broken;
    std::map<Key, const Journal*> entries;
    for (const Op& op : lock.ops)
        if (op.kind == "break" && op.ending == Ending::ok) broken.emplace(op.id, &op);
    for (const Journal& entry : lock.journal)
        if (entry.kind == "write") entries.emplace(key_of(entry), &entry);
    verdict.counts["leases broken"] += broken.size();

    // A force also shows the resource the token that the break has spent.
    HighWater forced;
    for (const Op& op : lock.ops)
        if (op.kind == "force" && op.ending == Ending::ok) forced.add({op.ended, op.token, &op});
    forced.settle();
    for (const Op& op : lock.ops) {
        const auto victim = broken.find(op.id);
        const bool late = victim != broken.end() && op.begun > victim->second->ended;
        if (late && op.ending == Ending::ok && (op.kind == "renew" || op.kind == "transfer" || op.kind == "acquire"))
            verdict.flag("C9", fmt::format("{}: {} under token {} after it was broken", lock.name, op.kind, op.token),
                         victim->second->end_line, op.end_line);
        if (op.kind != "write") continue;
        const Mark* force = forced.before(op.begun);
        if (force == nullptr || force->height < op.token) continue;
        if (op.ending == Ending::ok || entries.contains(key_of(op)))
            verdict.flag("C9",
                         fmt::format("{}: a write with token {} was accepted after {} had been taken away by force",
                                     lock.name, op.token, force->height),
                         force->op->end_line, op.line);
    }
}

}  // namespace checker
