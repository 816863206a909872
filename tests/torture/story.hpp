#pragma once

#include <string>
#include <utility>
#include <vector>

/// Histories made by hand. Times are milliseconds; every line has a key, by which a test changes it.
namespace torture {

class Story {
public:
    /// A line as it is, without braces: `"e":"heal","t":5`.
    Story& add(std::string key, std::string fields);
    /// A call and its end: lines `KEY` and `KEY.end`. `fields` are those of the beginning, `result` those of the end.
    Story& call(const std::string& key, const std::string& process, int begun, int ended, const std::string& fields,
                const std::string& result);
    /// A call that nobody heard the end of.
    Story& unheard(const std::string& key, const std::string& process, int begun, const std::string& fields);
    Story& believe(const std::string& key, const std::string& process, const std::string& id, int token, int at,
                   int until);
    Story& audit(const std::string& key, int seq, const std::string& kind, const std::string& id, int token,
                 const std::string& from = "");
    Story& state(int seq, const std::string& id, int token);
    Story& write_entry(const std::string& key, int version, const std::string& id, int token, int number, int base);
    Story& fault(const std::string& kind, const std::string& process, int begun, int ended, int copied = 0);
    Story& heal(int at);
    /// Lines `KEY`, `KEY.beat` and `KEY.end`.
    Story& life(const std::string& key, const std::string& process, const std::string& id, int token, int begun,
                int ended);

    /// Replaces a part of a line. Throws unless it is there: a test that changes nothing would prove nothing.
    Story& change(const std::string& key, const std::string& from, const std::string& to);
    Story& drop(const std::string& key);

    [[nodiscard]] std::string text() const;

private:
    std::vector<std::pair<std::string, std::string>> lines_{};
    int calls_ = 0;
};

/// Alice (A, token 100) holds and writes; Bob (B, token 200) waits in the queue, holds, renews and writes.
[[nodiscard]] Story two_holders();
/// The commands of two supervisors, A (token 100) and B (token 200), one after the other.
[[nodiscard]] Story supervised();
/// Alice is stopped while she holds (token 100), and Bob steals (token 200).
[[nodiscard]] Story theft();
/// The same, and somebody announces the end of Alice's lease before Bob comes.
[[nodiscard]] Story announced();
/// Bob waits; Carol comes after him and gets the lock before him.
[[nodiscard]] Story overtaken();

}  // namespace torture
