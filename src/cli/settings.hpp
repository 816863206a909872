#pragma once

#include "cli/config.hpp"
#include "cli/parse.hpp"
#include "client/policy.hpp"
#include "holdfast/lease.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

/// The variable with the lock_id of a lease that `acquire` took in the built-in default store. With it, the commands
/// that follow may look there, too.
constexpr std::string_view in_default_store = "HOLDFAST_IN_DEFAULT_STORE";

/// Whether `url` may hold a password: an @ may stand behind one, and a parameter may be one.
[[nodiscard]] bool may_hold_secret(std::string_view url);

/// The value of every option, from the first place that has one: the command line, the environment, the
/// configuration file, the default.
class Settings {
public:
    /// Refused with `usage` or `config`, depending on where the bad value stands.
    [[nodiscard]] static Result<Settings> settle(const CommandLine& line);

    /// Whether somebody gave a value, anywhere.
    [[nodiscard]] bool given(const Option& option) const { return values_.contains(option.name); }
    [[nodiscard]] bool on_command_line(const Option& option) const;
    [[nodiscard]] bool in_environment(const Option& option) const;

    /// The value or the default.
    [[nodiscard]] std::string text(const Option& option) const;
    [[nodiscard]] std::vector<std::string> texts(const Option& option) const;
    [[nodiscard]] bool on(const Option& option) const;
    [[nodiscard]] Result<std::chrono::milliseconds> duration(const Option& option) const;
    [[nodiscard]] Result<std::uint64_t> number(const Option& option, std::uint64_t most) const;
    [[nodiscard]] Result<Ttl> ttl(const Option& option) const;
    /// How long to wait in the queue; `milliseconds::max()` stands for ever.
    [[nodiscard]] Result<std::chrono::milliseconds> wait() const;
    [[nodiscard]] Result<std::vector<LockName>> names(const Option& option) const;
    [[nodiscard]] Result<Credentials> lease() const;

    /// What is asked of a lock's policy: --ttl, --max-hold, --wait, --unless-held.
    [[nodiscard]] Result<client::Wish> wish() const;
    /// The terms of the lock `name`, by the policies of the configuration.
    [[nodiscard]] Result<client::Terms> terms_for(const LockName& name) const;
    [[nodiscard]] Result<client::Terms> terms_for(const LockName& name, const client::Wish& wish) const;
    /// The same for a command that neither queues nor takes a lock: of what was asked for, only --ttl counts.
    [[nodiscard]] Result<client::Terms> terms_for_ttl(const LockName& name) const;

    /// The store's URL, secrets included. Refused with `usage` when several are named.
    [[nodiscard]] Result<std::string> store_url() const;
    /// All that are named, at least one. Refused with `config` where the built-in default store would be used although
    /// the environment has a lease of another one, and where `memory:` would guard nothing; with `usage` where a lease
    /// that is handed over would end with this process.
    [[nodiscard]] Result<std::vector<std::string>> store_urls() const;
    /// What HOLDFAST_STORE is set to for a child: all stores, separated by spaces, with absolute paths. Absent where a
    /// URL may hold a secret.
    [[nodiscard]] std::optional<std::string> store_for_child() const;

    /// Whether no store is named, so that it is the built-in default one.
    [[nodiscard]] bool uses_default_store() const { return texts(opt::store).empty(); }

    /// The configuration file that was read, if one was.
    [[nodiscard]] const std::string& config_path() const { return config_path_; }

private:
    struct Value {
        std::vector<std::string> texts{};
        std::string origin{};  ///< `--ttl`, `HOLDFAST_TTL`, `/etc/holdfast/holdfast.toml:3`
        Errc blame = Errc::usage;
    };

    [[nodiscard]] Result<Settings> checked(const std::vector<const Option*>& options) const;
    [[nodiscard]] std::optional<Error> check(const Option& option) const;
    [[nodiscard]] bool may_use_default_store() const;
    /// `error`, with where the value stands, and blamed on that place.
    [[nodiscard]] std::unexpected<Error> blamed(const Option& option, Error error) const;

    const Command* command_ = nullptr;
    std::map<std::string, Value, std::less<>> values_{};
    std::string config_path_{};
    std::vector<client::Policy> policies_{};
};

}  // namespace holdfast::cli
