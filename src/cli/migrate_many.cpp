// One command of `holdfast migrate` on several databases or schemas: this program once more for each of them, some at a
// time. What goes wrong with one of them, a crash included, stops no other.
#include "base/fd.hpp"
#include "base/os_error.hpp"
#include "cli/command.hpp"
#include "cli/migrate.hpp"
#include "cli/progress_line.hpp"
#include "config/store_urls.hpp"
#include "guards/run/signals.hpp"
#include "json/error.hpp"
#include "json/migrate.hpp"
#include "json/parse.hpp"
#include "values/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::cli {
namespace {

namespace guard = guards::run;

/// One database or schema, and what came of it.
struct Target {
    migrations::Database database;
    std::optional<Error> error{};
    std::optional<int> exit_status{};
    std::optional<json::Node> document{};

    [[nodiscard]] std::string label() const { return printable(migrations::shown(database)); }
    [[nodiscard]] std::string_view status() const {
        if (error || exit_status.value_or(0) != 0) return "failed";
        if (!exit_status) return "not_started";
        return refusal() == nullptr ? "done" : "skipped";
    }
    /// The error in the document, if it has one.
    [[nodiscard]] const json::Node* refusal() const {
        const auto* const members = document ? document->object() : nullptr;
        if (members == nullptr) return nullptr;
        const auto found = std::ranges::find(*members, "error", &json::Member::key);
        return found == members->end() ? nullptr : &found->node;
    }
};

/// `applied 2, pending 1`, of the lists in the document; or the error.
std::string words_of(const Target& target) {
    const auto said = [](Errc code, const std::string& message) {
        return fmt::format("{}: {}", row_of(code).name, printable(message));
    };
    if (target.error) return said(target.error->code, target.error->message);
    if (!target.document) return "";
    if (target.refusal() != nullptr) {
        const auto error = json::read_error(*target.document);
        return error ? said(error->code, error->message) : printable(error.error().message);
    }
    std::vector<std::string> words;
    const auto* const members = target.document->object();
    for (const json::Member& member : members == nullptr ? json::Node::Object{} : *members) {
        if (const auto* items = member.node.array(); items != nullptr && !items->empty())
            words.push_back(fmt::format("{} {}", member.key, items->size()));
        if (const auto* text = std::get_if<std::string>(&member.node.value))
            words.push_back(fmt::format("{} {}", member.key, printable(*text)));
    }
    return words.empty() ? "nothing to do" : fmt::to_string(fmt::join(words, ", "));
}

/// This program at work on one target. Its standard output is its document; what it says to people is passed on.
class Child {
public:
    Child(Target& target, const Context& context) : target_(target), context_(context) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() = default;

    /// The errno, or 0.
    [[nodiscard]] int start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                            const sigset_t& mask) {
        std::array<int, 2> out{};
        std::array<int, 2> err{};
        if (pipe2(out.data(), O_CLOEXEC) != 0) return errno;
        out_ = base::Fd(out[0]);
        const base::Fd out_of_child(out[1]);
        if (pipe2(err.data(), O_CLOEXEC) != 0) return errno;
        err_ = base::Fd(err[0]);
        const base::Fd err_of_child(err[1]);
        posix_spawn_file_actions_t files{};
        posix_spawnattr_t attributes{};
        posix_spawn_file_actions_init(&files);
        posix_spawnattr_init(&attributes);
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, out_of_child.get(), STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&files, err_of_child.get(), STDERR_FILENO);
        // In a group of its own: what comes from the terminal is passed on once, and would otherwise arrive twice.
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setsigmask(&attributes, &mask);
        const auto argv = pointers(command);
        const auto envp = pointers(environment);
        const int failed = posix_spawn(&pid_, argv[0], &files, &attributes, argv.data(), envp.data());
        posix_spawn_file_actions_destroy(&files);
        posix_spawnattr_destroy(&attributes);
        return failed;
    }

    void signal(int number) const { kill(pid_, number); }
    void add_to(std::vector<pollfd>& watched) const {
        for (const base::Fd* end : {&out_, &err_})
            if (*end) watched.push_back({end->get(), POLLIN, 0});
    }
    void read_from(int ready) {
        std::array<char, 65536> bytes{};
        base::Fd& end = ready == out_.get() ? out_ : err_;
        const ssize_t count = ::read(ready, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) return;
        if (count <= 0) return end.reset();
        (ready == out_.get() ? document_ : notes_).append(bytes.data(), static_cast<std::size_t>(count));
        if (ready == err_.get()) pass_notes_on();
    }
    [[nodiscard]] bool has(int end) const { return end == out_.get() || end == err_.get(); }
    [[nodiscard]] bool is_silent() const { return !out_ && !err_; }

    /// After its last word.
    void finish() {
        if (!notes_.empty()) notes_ += '\n';
        pass_notes_on();
        int status = 0;
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        target_.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        constexpr json::ParseLimits no_limit{.bytes = std::size_t{1} << 30, .depth = 16};
        if (auto read = json::parse(document_, no_limit)) target_.document = *std::move(read);
        if (*target_.exit_status != 0 && !target_.document)
            target_.error =
                Error{Errc::outcome_unknown,
                      fmt::format("its process ended with status {} and without a word", *target_.exit_status)};
    }

private:
    static std::vector<char*> pointers(const std::vector<std::string>& texts) {
        std::vector<char*> all;
        for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
        all.push_back(nullptr);
        return all;
    }

    void pass_notes_on() {
        constexpr std::string_view ours = "holdfast: ";
        for (auto end = notes_.find('\n'); end != std::string::npos; end = notes_.find('\n')) {
            std::string_view line = std::string_view(notes_).substr(0, end);
            if (line.starts_with(ours)) line.remove_prefix(ours.size());
            context_.out.note(fmt::format("{}{}: {}", ours, target_.label(), line));
            notes_.erase(0, end + 1);
        }
    }

    Target& target_;
    const Context& context_;
    pid_t pid_ = -1;
    base::Fd out_{};
    base::Fd err_{};
    std::string document_{};
    std::string notes_{};
};

/// All targets, a few at a time.
class Fleet {
public:
    Fleet(const Context& context, std::vector<Target>& targets, std::size_t at_once)
        : context_(context), targets_(targets), at_once_(at_once), progress_(context.out.style()) {}

    /// The signal that asked for an end, if one came: what runs then is ended, and nothing else begun.
    [[nodiscard]] std::optional<int> run() {
        while (true) {
            while (!signal_ && next_ < targets_.size() && children_.size() < at_once_) start(targets_[next_++]);
            if (children_.empty()) return signal_;
            progress_.show(fmt::format("{}/{} databases", next_ - children_.size(), targets_.size()));
            wait();
        }
    }

private:
    void start(Target& target) {
        if (target.error) return;
        auto command = same_command(context_, {opt::database.name, opt::store.name, opt::schema.name,
                                               opt::schemas_like.name, opt::parallel.name, opt::json.name});
        if (!target.database.schema.empty()) command.push_back("--schema=" + target.database.schema);
        command.emplace_back("--json");
        auto child = std::make_unique<Child>(target, context_);
        if (const int failed = child->start(command, environment_for(target), signals_.mask_before()); failed != 0)
            target.error = base::os_error(failed, "start this program once more");
        else
            children_.push_back(std::move(child));
    }

    /// A URL may hold a password, and others can read a command line.
    std::vector<std::string> environment_for(const Target& target) const {
        std::vector<std::string> environment;
        for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
        const auto set = [&](const std::string& name, const std::string& value) {
            std::erase_if(environment, [&](const std::string& each) { return each.starts_with(name + "="); });
            environment.push_back(name + "=" + value);
        };
        set("HOLDFAST_DATABASE", target.database.url);
        std::error_code ignored;
        if (context_.settings.on_command_line(opt::store))
            set("HOLDFAST_STORE", config::joined_stores(context_.settings.texts(opt::store),
                                                        std::filesystem::current_path(ignored).string()));
        return environment;
    }

    void wait() {
        std::vector<pollfd> watched{{signals_.descriptor(), POLLIN, 0}};
        for (const auto& child : children_) child->add_to(watched);
        if (poll(watched.data(), watched.size(), -1) < 0) return;
        if (watched.front().revents != 0) pass_signals_on();
        for (std::size_t i = 1; i < watched.size(); ++i) {
            if (watched[i].revents == 0) continue;
            for (const auto& child : children_)
                if (child->has(watched[i].fd)) child->read_from(watched[i].fd);
        }
        std::erase_if(children_, [](const auto& child) {
            if (child->is_silent()) child->finish();
            return child->is_silent();
        });
    }

    void pass_signals_on() {
        while (const auto signal = signals_.next()) {
            if (!signal_) signal_ = signal;
            for (const auto& child : children_) child->signal(*signal);
        }
    }

    const Context& context_;
    std::vector<Target>& targets_;
    const std::size_t at_once_;
    const ProgressLine progress_;
    const guard::Signals signals_{guard::Signals::Take::requests_to_end};
    std::vector<std::unique_ptr<Child>> children_{};
    std::size_t next_ = 0;
    std::optional<int> signal_{};
};

/// All schemas of one database that the command is about.
std::vector<Target> targets_in(const Context& context, const std::string& url) {
    const auto refused = [&](const Error& error) { return std::vector{Target{.database = url, .error = error}}; };
    std::vector<Target> targets;
    std::vector<std::string> schemas{context.settings.text(opt::schema)};
    if (context.settings.given(opt::schemas_like)) {
        auto found =
            migrations::schemas_like(url, context.settings.text(opt::schemas_like), context.clock, context.soon());
        if (!found) return refused(found.error());
        schemas = *std::move(found);
    }
    for (const std::string& schema : schemas) {
        auto database = migrations::in_schema(url, schema);
        if (!database) return refused(database.error());
        targets.push_back({.database = *std::move(database)});
    }
    return targets;
}

Result<std::vector<Target>> targets_of(const Context& context) {
    const auto urls = database_urls(context);
    if (!urls) return std::unexpected(urls.error());
    if (context.settings.given(opt::schemas_like) && context.settings.given(opt::schema))
        return fail(Errc::usage, "--schema and --schemas-like cannot both be meant");
    // A variable that a script left unset must not lead into the usual schema.
    if (context.settings.given(opt::schema) && context.settings.text(opt::schema).empty())
        return fail(Errc::usage, "--schema needs a name");
    std::vector<Target> targets;
    for (const std::string& url : *urls)
        for (Target& target : targets_in(context, url))
            if (std::ranges::find(targets, target.database, &Target::database) == targets.end())
                targets.push_back(std::move(target));
    if (targets.size() == 1 && targets.front().error) return std::unexpected(*targets.front().error);
    if (targets.empty())
        return fail(Errc::usage,
                    fmt::format("no schema is LIKE \"{}\"", printable(context.settings.text(opt::schemas_like))));
    return targets;
}

Result<std::size_t> how_many_at_once(const Context& context) {
    const auto number = context.settings.number(opt::parallel, 256);
    if (!number) return std::unexpected(number.error());
    if (*number == 0) return fail(Errc::usage, "--parallel 0 would do nothing");
    if (!context.settings.given(opt::lock)) return *number;
    if (context.settings.on_command_line(opt::parallel) && *number > 1)
        return fail(Errc::usage,
                    "--lock names one lock for all of them, so one waits for the other; leave --parallel "
                    "out");
    return std::size_t{1};
}

bool would_ask(const Context& context) {
    const auto& options = context.line.command->options;
    const bool asks = std::ranges::find(options, opt::yes.name, &Option::name) != options.end();
    return asks && !context.settings.on(opt::yes) && !context.settings.on(opt::dry_run);
}

void show(Context& context, const std::vector<Target>& targets) {
    if (context.out.style().json) {
        std::vector<json::MigrationTarget> items;
        for (const Target& target : targets)
            items.push_back({.database = migrations::shown(target.database.url),
                             .schema = target.database.schema,
                             .status = target.status(),
                             .exit_status = target.exit_status,
                             .document = target.document ? &*target.document : nullptr,
                             .error = target.error});
        return context.out.document(json::migration_targets(items).done());
    }
    std::vector<Row> rows;
    for (const Target& target : targets) {
        const std::string_view status = target.status();
        const bool calm = context.out.style().quiet && status == "done";
        if (calm) continue;
        rows.push_back(
            {{target.label(), status == "not_started" ? "not started" : std::string(status), words_of(target)},
             status == "done"     ? Colour::green
             : status == "failed" ? Colour::red
                                  : Colour::yellow});
    }
    if (!rows.empty()) context.out.table({"DATABASE", "RESULT", "WHAT"}, rows);
}

Result<int> run_fleet(Context& context, std::vector<Target> targets) {
    const auto at_once = how_many_at_once(context);
    if (!at_once) return std::unexpected(at_once.error());
    if (would_ask(context))
        return fail(Errc::usage, fmt::format("nobody is asked for each of {} databases; look with --dry-run, then "
                                             "repeat it with --yes",
                                             targets.size()));
    const auto signal = Fleet(context, targets, *at_once).run();
    show(context, targets);
    // The table first, also on a terminal.
    static_cast<void>(context.out.flush());
    const auto failed = std::ranges::count(targets, "failed", &Target::status);
    if (failed > 0)
        context.out.note(
            fmt::format("holdfast: {} of {} failed; a second run does what is left", failed, targets.size()));
    if (signal) return 128 + *signal;
    return failed == 0 ? 0 : row_of(Errc::migration_failed).exit_status;
}

}  // namespace

Result<int> on_each_database(Context& context, const OnDatabase& work) {
    auto targets = targets_of(context);
    if (!targets) return std::unexpected(targets.error());
    if (targets->size() == 1 && !context.settings.given(opt::schemas_like))
        return work(context, targets->front().database);
    return run_fleet(context, *std::move(targets));
}

}  // namespace holdfast::cli
