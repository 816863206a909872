#include "history.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace checker {
namespace {

using boost::json::object;

std::string text(const object& line, std::string_view key) {
    const auto* value = line.if_contains(key);
    return value == nullptr || value->is_null() ? "" : std::string(value->as_string());
}

std::string required_text(const object& line, std::string_view key) { return std::string(line.at(key).as_string()); }

std::int64_t number(const object& line, std::string_view key) {
    const auto* value = line.if_contains(key);
    return value == nullptr || value->is_null() ? 0 : value->to_number<std::int64_t>();
}

std::uint64_t count(const object& line, std::string_view key) { return static_cast<std::uint64_t>(number(line, key)); }

Nanos required_time(const object& line, std::string_view key) { return line.at(key).to_number<Nanos>(); }

Ending ending_of(const std::string& word) {
    if (word == "ok") return Ending::ok;
    if (word == "unknown") return Ending::unknown;
    if (word == "refused" || word == "lost") return Ending::refused;
    throw std::runtime_error("no call ends with \"" + word + "\"");
}

/// Collects lines, and joins ends to beginnings.
class Reader {
public:
    void read(std::string_view line) {
        history_.lines.emplace_back(line);
        const object fields = boost::json::parse(line).as_object();
        const std::string kind = required_text(fields, "e");
        if (kind == "begin") return begin(fields);
        if (kind == "end") return end(fields);
        if (kind == "believe" || kind == "lost") return believe(fields, kind == "lost");
        if (kind == "life") return life(fields);
        if (kind == "audit") return audit(fields);
        if (kind == "state") return state(fields);
        if (kind == "journal") return journal(fields);
        if (kind == "fault") return fault(fields);
        if (kind == "heal") return void(history_.healed = required_time(fields, "t"));
        if (kind == "run") return run(fields);
        throw std::runtime_error("there is no line of kind \"" + kind + "\"");
    }

    History finish() {
        for (auto& op : ops_) lock(op.lock).ops.push_back(std::move(op));
        for (auto& [name, lock] : history_.locks) {
            std::ranges::stable_sort(lock.ops, {}, &Op::begun);
            std::ranges::stable_sort(lock.beliefs, {}, &Belief::at);
        }
        return std::move(history_);
    }

private:
    using Key = std::pair<std::string, std::uint64_t>;

    static Key key_of(const object& fields) { return {required_text(fields, "p"), count(fields, "i")}; }
    [[nodiscard]] std::size_t line() const { return history_.lines.size(); }
    LockHistory& lock(const std::string& name) {
        LockHistory& found = history_.locks[name];
        found.name = name;
        return found;
    }

    void begin(const object& fields) {
        if (!open_.emplace(key_of(fields), ops_.size()).second) throw std::runtime_error("this call began before");
        Op op;
        op.line = line();
        op.process = required_text(fields, "p");
        op.kind = required_text(fields, "op");
        op.lock = required_text(fields, "l");
        op.id = text(fields, "id");
        op.to = text(fields, "to");
        op.token = count(fields, "tok");
        op.begun = required_time(fields, "t");
        op.ticket = number(fields, "ticket") * 1'000'000;
        op.number = count(fields, "n");
        op.base = count(fields, "base");
        ops_.push_back(std::move(op));
    }

    void end(const object& fields) {
        const auto found = open_.find(key_of(fields));
        if (found == open_.end()) throw std::runtime_error("this call never began");
        Op& op = ops_[found->second];
        if (op.end_line != 0) throw std::runtime_error("this call ended before");
        op.end_line = line();
        op.ending = ending_of(required_text(fields, "r"));
        op.why = text(fields, "why");
        op.granted = count(fields, "tok");
        op.renewals = count(fields, "rs");
        op.version = count(fields, "v");
        op.returned = required_time(fields, "t");
        if (op.ending != Ending::unknown) op.ended = op.returned;
    }

    void believe(const object& fields, bool lost) {
        Belief belief{.line = line(),
                      .process = required_text(fields, "p"),
                      .lock = required_text(fields, "l"),
                      .id = required_text(fields, "id"),
                      .token = count(fields, "tok"),
                      .at = required_time(fields, "t"),
                      .until = required_time(fields, lost ? "t" : "until"),
                      .lost = lost};
        lock(belief.lock).beliefs.push_back(belief);
    }

    void life(const object& fields) {
        const std::string id = required_text(fields, "id");
        const Nanos at = required_time(fields, "t");
        Life& life = lock(required_text(fields, "l")).lives[id];
        life.id = id;
        life.process = required_text(fields, "p");
        life.token = count(fields, "tok");
        life.ended = life.ended || required_text(fields, "what") == "end";
        if (at < life.begun) life.line = line();
        if (at >= life.seen) life.seen_line = line();
        life.begun = std::min(life.begun, at);
        life.seen = std::max(life.seen, at);
    }

    void audit(const object& fields) {
        Audit event{.line = line(),
                    .lock = required_text(fields, "l"),
                    .kind = required_text(fields, "kind"),
                    .id = text(fields, "id"),
                    .from = text(fields, "from"),
                    .token = count(fields, "tok"),
                    .seq = count(fields, "seq")};
        lock(event.lock).audit.push_back(event);
    }

    void state(const object& fields) {
        const std::string name = required_text(fields, "l");
        lock(name).state = State{.line = line(),
                                 .lock = name,
                                 .id = text(fields, "id"),
                                 .chain = text(fields, "chain"),
                                 .token = count(fields, "tok"),
                                 .seq = count(fields, "seq")};
    }

    void journal(const object& fields) {
        Journal entry{.line = line(),
                      .lock = required_text(fields, "l"),
                      .kind = required_text(fields, "kind"),
                      .id = text(fields, "id"),
                      .token = count(fields, "tok"),
                      .version = count(fields, "v"),
                      .number = count(fields, "n"),
                      .base = count(fields, "base")};
        lock(entry.lock).journal.push_back(entry);
    }

    void fault(const object& fields) {
        history_.faults.push_back({.line = line(),
                                   .kind = required_text(fields, "kind"),
                                   .process = text(fields, "p"),
                                   .begun = required_time(fields, "t"),
                                   .ended = required_time(fields, "t1"),
                                   .from = number(fields, "from"),
                                   .delay = number(fields, "ms") * 1'000'000});
    }

    void run(const object& fields) {
        history_.seed = count(fields, "seed");
        history_.store = text(fields, "store");
        const auto* control = fields.if_contains("control");
        history_.control = control != nullptr && control->as_bool();
        for (const auto& fault : fields.at("require").as_array())
            history_.required.emplace_back(std::string(fault.as_string()));
    }

    History history_{};
    std::vector<Op> ops_{};
    std::map<Key, std::size_t> open_{};
};

}  // namespace

History parse(std::string_view text) {
    Reader reader;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        try {
            reader.read(text.substr(0, end));
        } catch (const std::exception& error) {
            throw std::runtime_error("line " + std::to_string(number) + ": " + error.what());
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return reader.finish();
}

}  // namespace checker
