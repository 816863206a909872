#include "story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace torture {
namespace {

constexpr std::int64_t ns = 1'000'000;

std::string comma(const std::string& fields) { return fields.empty() ? "" : "," + fields; }

}  // namespace

Story& Story::add(std::string key, std::string fields) {
    lines_.emplace_back(std::move(key), std::move(fields));
    return *this;
}

Story& Story::unheard(const std::string& key, const std::string& process, int begun, const std::string& fields) {
    return add(key, fmt::format(R"("e":"begin","p":"{}","i":{},"l":"L","t":{}{})", process, ++calls_, begun * ns,
                                comma(fields)));
}

Story& Story::call(const std::string& key, const std::string& process, int begun, int ended, const std::string& fields,
                   const std::string& result) {
    unheard(key, process, begun, fields);
    return add(key + ".end",
               fmt::format(R"("e":"end","p":"{}","i":{},"t":{}{})", process, calls_, ended * ns, comma(result)));
}

Story& Story::believe(const std::string& key, const std::string& process, const std::string& id, int token, int at,
                      int until) {
    return add(key, fmt::format(R"("e":"believe","p":"{}","l":"L","id":"{}","tok":{},"t":{},"until":{})", process, id,
                                token, at * ns, until * ns));
}

Story& Story::audit(const std::string& key, int seq, const std::string& kind, const std::string& id, int token,
                    const std::string& from) {
    return add(key, fmt::format(R"("e":"audit","l":"L","seq":{},"kind":"{}","id":"{}","tok":{},"from":"{}")", seq, kind,
                                id, token, from));
}

Story& Story::state(int seq, const std::string& id, int token) {
    return add("state", fmt::format(R"("e":"state","l":"L","seq":{},"id":"{}","tok":{},"chain":"ok")", seq, id, token));
}

Story& Story::write_entry(const std::string& key, int version, const std::string& id, int token, int number, int base) {
    return add(key, fmt::format(R"("e":"journal","l":"L","kind":"write","v":{},"id":"{}","tok":{},"n":{},"base":{})",
                                version, id, token, number, base));
}

Story& Story::fault(const std::string& kind, const std::string& process, int begun, int ended, int copied) {
    return add("fault", fmt::format(R"("e":"fault","kind":"{}","p":"{}","t":{},"t1":{},"from":{})", kind, process,
                                    begun * ns, ended * ns, copied * ns));
}

Story& Story::heal(int at) { return add("heal", fmt::format(R"("e":"heal","t":{})", at * ns)); }

Story& Story::life(const std::string& key, const std::string& process, const std::string& id, int token, int begun,
                   int ended) {
    const auto line = [&](const std::string& name, const std::string& what, int at) {
        add(name, fmt::format(R"("e":"life","p":"{}","l":"L","id":"{}","tok":{},"what":"{}","t":{})", process, id,
                              token, what, at * ns));
    };
    line(key, "begin", begun);
    line(key + ".beat", "beat", (begun + ended) / 2);
    line(key + ".end", "end", ended);
    return *this;
}

Story& Story::change(const std::string& key, const std::string& from, const std::string& to) {
    for (auto& [name, fields] : lines_) {
        const auto at = name == key ? fields.find(from) : std::string::npos;
        if (at == std::string::npos) continue;
        fields.replace(at, from.size(), to);
        return *this;
    }
    throw std::logic_error("there is no " + from + " in " + key);
}

Story& Story::drop(const std::string& key) {
    if (std::erase_if(lines_, [&](const auto& line) { return line.first == key; }) == 0)
        throw std::logic_error("there is no " + key);
    return *this;
}

std::string Story::text() const {
    std::string text = R"({"e":"run","seed":7,"store":"made up","require":[]})";
    text += '\n';
    for (const auto& [key, fields] : lines_) text += "{" + fields + "}\n";
    return text;
}

Story two_holders() {
    Story story;
    story.call("A.acquire", "a", 10, 20, R"("op":"acquire","id":"A")", R"("r":"ok","tok":100)")
        .believe("A.believe", "a", "A", 100, 20, 900)
        .call("A.seal", "a", 21, 22, R"("op":"seal","id":"A","tok":100)", R"("r":"ok")")
        .call("A.read", "a", 23, 24, R"("op":"read","id":"A","tok":100)", R"("r":"ok","v":0)")
        .call("A.write", "a", 25, 26, R"("op":"write","id":"A","tok":100,"n":1,"base":0)", R"("r":"ok","v":1)")
        .call("B.wait", "b", 12, 25, R"("op":"acquire","id":"B","ticket":3000)",
              R"("r":"refused","why":"E_LOCK_CONFLICT")")
        .call("A.release", "a", 30, 31, R"("op":"release","id":"A","tok":100)", R"("r":"ok")")
        .call("B.acquire", "b", 40, 45, R"("op":"acquire","id":"B","ticket":3000)", R"("r":"ok","tok":200)")
        .believe("B.believe", "b", "B", 200, 45, 900)
        .call("B.renew", "b", 50, 55, R"("op":"renew","id":"B","tok":200)", R"("r":"ok","rs":1)")
        .call("B.seal", "b", 56, 57, R"("op":"seal","id":"B","tok":200)", R"("r":"ok")")
        .call("B.read", "b", 58, 59, R"("op":"read","id":"B","tok":200)", R"("r":"ok","v":1)")
        .call("B.write", "b", 60, 61, R"("op":"write","id":"B","tok":200,"n":1,"base":1)", R"("r":"ok","v":2)")
        .call("B.release", "b", 70, 71, R"("op":"release","id":"B","tok":200)", R"("r":"ok")")
        .audit("1", 1, "acquired", "A", 100)
        .audit("2", 2, "released", "A", 100)
        .audit("3", 3, "acquired", "B", 200)
        .audit("4", 4, "renewed", "B", 200)
        .audit("5", 5, "released", "B", 200)
        .state(5, "", 200)
        .write_entry("v1", 1, "A", 100, 1, 0)
        .write_entry("v2", 2, "B", 200, 1, 1);
    return story;
}

Story supervised() {
    Story story;
    story.call("A.run", "a", 10, 810, R"("op":"supervise")", R"("r":"ok")")
        .life("A.life", "a", "A", 100, 30, 800)
        .call("B.run", "b", 100, 1410, R"("op":"supervise")", R"("r":"ok")")
        .life("B.life", "b", "B", 200, 850, 1400)
        .audit("1", 1, "acquired", "A", 100)
        .audit("2", 2, "renewed", "A", 100)
        .audit("3", 3, "released", "A", 100)
        .audit("4", 4, "acquired", "B", 200)
        .audit("5", 5, "released", "B", 200)
        .state(5, "", 200);
    return story;
}

Story theft() {
    Story story;
    story.call("A.acquire", "a", 10, 20, R"("op":"acquire","id":"A")", R"("r":"ok","tok":100)")
        .believe("A.believe", "a", "A", 100, 20, 900)
        .call("B.acquire", "b", 1000, 1010, R"("op":"acquire","id":"B")", R"("r":"ok","tok":200)")
        .believe("B.believe", "b", "B", 200, 1010, 1900)
        .call("B.seal", "b", 1020, 1030, R"("op":"seal","id":"B","tok":200)", R"("r":"ok")")
        .call("A.write", "a", 1100, 1110, R"("op":"write","id":"A","tok":100,"n":1,"base":0)", R"("r":"refused")")
        .audit("1", 1, "acquired", "A", 100)
        .audit("2", 2, "stolen", "B", 200, "A")
        .state(2, "B", 200);
    return story;
}

Story announced() {
    return theft()
        .drop("2")
        .drop("state")
        .audit("2", 2, "expired", "A", 100)
        .audit("3", 3, "acquired", "B", 200, "A")
        .state(3, "B", 200);
}

Story overtaken() {
    return two_holders()
        .call("C.acquire", "c", 32, 35, R"("op":"acquire","id":"C","ticket":3000)", R"("r":"ok","tok":150)")
        .call("C.release", "c", 36, 37, R"("op":"release","id":"C","tok":150)", R"("r":"ok")")
        .drop("3")
        .drop("4")
        .drop("5")
        .audit("3", 3, "acquired", "C", 150)
        .audit("4", 4, "released", "C", 150)
        .audit("5", 5, "acquired", "B", 200)
        .audit("6", 6, "renewed", "B", 200)
        .audit("7", 7, "released", "B", 200)
        .change("state", R"("seq":5)", R"("seq":7)");
}

}  // namespace torture
