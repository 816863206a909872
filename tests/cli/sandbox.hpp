#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace boost::json {
class value;
}

/// Runs the real program in a home of its own, and reads what it printed.
namespace holdfast::cli_test {

/// One JSON document. Fields are named by JSON pointers: `/error/code`, `/locks/0/name`.
class Document {
public:
    /// Absent unless `text` is exactly one document.
    [[nodiscard]] static std::optional<Document> parse(const std::string& text);

    [[nodiscard]] bool has(std::string_view pointer) const;       ///< There, and not null.
    [[nodiscard]] bool contains(std::string_view pointer) const;  ///< There.
    [[nodiscard]] std::string text(std::string_view pointer) const;
    [[nodiscard]] std::int64_t number(std::string_view pointer) const;
    [[nodiscard]] bool yes(std::string_view pointer) const;
    [[nodiscard]] std::size_t size(std::string_view pointer) const;

private:
    explicit Document(std::shared_ptr<const boost::json::value> value) : value_(std::move(value)) {}
    std::shared_ptr<const boost::json::value> value_;
};

/// How a run ended.
struct Ended {
    int status = -1;  ///< Exit status, or 128+n after a signal.
    std::string out{};
    std::string err{};

    /// What it printed; a failed test, and an empty object, unless that is exactly one document.
    [[nodiscard]] Document json() const;
    [[nodiscard]] std::string code() const { return json().text("/error/code"); }
};

using Args = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

/// A run that goes on.
class Running {
public:
    Running(pid_t pid, std::filesystem::path out, std::filesystem::path err);
    Running(Running&& other) noexcept;
    Running& operator=(Running&&) = delete;
    ~Running();  ///< Kills it, if it still runs.

    [[nodiscard]] pid_t pid() const { return pid_; }
    void signal(int number) const;
    /// Whether a signal has stopped it, as /proc says.
    [[nodiscard]] bool is_stopped() const;
    /// Whether `number` was sent and has not been taken yet.
    [[nodiscard]] bool has_pending(int number) const;
    /// Whether it has opened the file at `path`.
    [[nodiscard]] bool has_open(const std::filesystem::path& path) const;
    [[nodiscard]] std::string out() const;
    [[nodiscard]] std::string err() const;
    /// Waits for the end. One that never comes fails the test after a minute, and the program is killed.
    [[nodiscard]] Ended wait();

private:
    pid_t pid_;
    std::filesystem::path out_;
    std::filesystem::path err_;
};

/// A temporary home, state folder and working directory, and nothing of the real environment.
class Sandbox {
public:
    Sandbox();
    ~Sandbox();
    Sandbox(const Sandbox&) = delete;
    Sandbox& operator=(const Sandbox&) = delete;

    std::filesystem::path root;
    std::filesystem::path work;  ///< The working directory.
    std::filesystem::path state;
    Environment environment;
    std::string program;  ///< The command, unless a test sets another.

    /// Runs the program to its end. `more` is added to the environment.
    [[nodiscard]] Ended run(const Args& args, const Environment& more = {});
    [[nodiscard]] Running start(const Args& args, const Environment& more = {});
    /// Runs any other program.
    [[nodiscard]] Ended run_program(const Args& args, const Environment& more = {});
    [[nodiscard]] Running start_program(const Args& args, const Environment& more = {});

    /// What the screen of a terminal shows: messages (standard error), output, too, or nothing.
    enum class Screen { messages, all, nothing };
    /// Runs the program with a terminal as standard input and error, on which `typed` was typed. What the screen shows
    /// is in `err`. It is ended after 20 s.
    [[nodiscard]] Ended run_on_terminal(const Args& args, const std::string& typed, Screen screen = Screen::messages);

    void write(const std::filesystem::path& path, std::string_view text) const;
    /// Every file below the root but the outputs, by path, with its content. The index of SQLite's log has none: it is
    /// rebuilt from the log by the first process that opens the store.
    [[nodiscard]] std::map<std::string, std::string> files() const;

private:
    [[nodiscard]] Running spawn(const Args& command, const Environment& more);
    int runs_ = 0;
};

/// The command with shared libraries, for tests that preload one. The same where only that is built.
[[nodiscard]] std::string full_program();

/// The stores that every test of behaviour runs on, as the value of --store.
[[nodiscard]] std::vector<std::string> stores();

/// Looks until `condition` holds. Fails the test when it never does.
template <class Condition>
bool eventually(Condition condition);

/// Sleeps for a moment between two looks.
void moment();

template <class Condition>
bool eventually(Condition condition) {
    for (int look = 0; look < 3000; ++look) {
        if (condition()) return true;
        moment();
    }
    return false;
}

}  // namespace holdfast::cli_test
