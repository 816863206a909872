#pragma once

#include "client/policy.hpp"
#include "config/holdfast_toml.hpp"
#include "config/setting.hpp"
#include "holdfast/lease.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::config {

/// The variable with the lock_id of a lease that `acquire` took in the built-in default store. With it, the commands
/// that follow may look there, too.
constexpr std::string_view in_default_store = "HOLDFAST_IN_DEFAULT_STORE";

/// The settings that a command line names, each with its values; a switch without a value is `on`.
using Given = std::map<std::string, std::vector<std::string>, std::less<>>;

/// What a child needs to know to use the same stores. One of the three, or none where they are not known.
struct StoreForChild {
    /// HOLDFAST_STORE: all of them, separated by spaces, with absolute paths. Absent where a URL may hold a secret,
    /// unless it is in the environment already.
    std::optional<std::string> urls{};
    /// HOLDFAST_STORE_FILE, where they came from, as an absolute path.
    std::optional<std::string> file{};
    /// HOLDFAST_STORE_WITHHELD: says that the URLs were left out. It is the path of the configuration file that they
    /// came from, or else a word that is no path. A child that finds another configuration file would use another
    /// store, so it must not use what that file names.
    std::optional<std::string> withheld{};
};

/// What the settings are for: which of them can be given, and which stores would be a mistake.
struct Purpose {
    std::string_view name{};                 ///< In messages: `acquire`.
    std::vector<const Setting*> settings{};  ///< All that can be given.
    /// The keys that holdfast.toml may have: those of every purpose, since all share one file. Null: no file is read.
    std::vector<std::string> (*known_keys)() = nullptr;
    bool presents_lease = false;  ///< It sends the lease of the environment, which a store that it is not of refuses.
    bool hands_lease_on = false;  ///< What is granted is for the caller, and has to outlive this process.
    bool may_use_memory = false;  ///< Nothing of the store is needed when this process has ended.
};

/// The value of every setting, from the first place that has one: the command line, the environment, the
/// configuration file, the default.
class Settings {
public:
    /// Refused with `usage` or `config`, depending on where the bad value stands.
    [[nodiscard]] static Result<Settings> settle(const Purpose& purpose, const Given& given);

    /// Whether somebody gave a value, anywhere.
    [[nodiscard]] bool given(const Setting& which) const { return values_.contains(which.name); }
    [[nodiscard]] bool on_command_line(const Setting& which) const;
    [[nodiscard]] bool in_environment(const Setting& which) const;

    /// The value or the default.
    [[nodiscard]] std::string text(const Setting& which) const;
    [[nodiscard]] std::vector<std::string> texts(const Setting& which) const;
    [[nodiscard]] bool on(const Setting& which) const;
    [[nodiscard]] Result<std::chrono::milliseconds> duration(const Setting& which) const;
    [[nodiscard]] Result<std::uint64_t> number(const Setting& which, std::uint64_t most) const;
    [[nodiscard]] Result<Ttl> ttl(const Setting& which) const;
    /// How long to wait in the queue; `milliseconds::max()` stands for ever.
    [[nodiscard]] Result<std::chrono::milliseconds> wait() const;
    [[nodiscard]] Result<std::vector<LockName>> names(const Setting& which) const;
    /// --meta KEY=VALUE, each key once.
    [[nodiscard]] Result<std::map<std::string, std::string>> meta() const;
    [[nodiscard]] Result<Credentials> lease() const;

    /// What is asked of a lock's policy: --ttl, --max-hold, --wait, --unless-held.
    [[nodiscard]] Result<client::Wish> wish() const;
    /// The terms of the lock `name`, by the policies of the configuration.
    [[nodiscard]] Result<client::Terms> terms_for(const LockName& name) const;
    [[nodiscard]] Result<client::Terms> terms_for(const LockName& name, const client::Wish& wish) const;
    /// The same for a command that neither queues nor takes a lock: of what was asked for, only --ttl counts.
    [[nodiscard]] Result<client::Terms> terms_for_ttl(const LockName& name) const;
    /// What the policies say of taking the lock `name` away from a live holder; empty if they say nothing.
    [[nodiscard]] std::optional<bool> may_unlock(const LockName& name) const;
    /// The same for a renewal, which a policy may forbid.
    [[nodiscard]] Result<client::Terms> terms_for_renewal(const LockName& name) const;

    /// The store's URL, secrets included. Refused with `usage` when several are named.
    [[nodiscard]] Result<std::string> store_url() const;
    /// All that are named, at least one. Refused with `config` where the built-in default store would be used although
    /// the environment has a lease of another one, and where `memory:` would guard nothing; with `usage` where a lease
    /// that is handed over would end with this process.
    [[nodiscard]] Result<std::vector<std::string>> store_urls() const;
    /// How a child is told of the stores.
    [[nodiscard]] StoreForChild store_for_child() const;

    /// Whether this is the built-in default store, and nothing says that the lease of HOLDFAST_LEASE is there.
    [[nodiscard]] bool may_be_the_wrong_store() const;

    /// Whether no store is named, so that it is the built-in default one.
    [[nodiscard]] bool uses_default_store() const { return texts(setting::store).empty(); }

    /// The tables of `data sync`, as the configuration lists them.
    [[nodiscard]] const std::vector<DataTable>& data_tables() const { return data_tables_; }

    /// The configuration file that was read, if one was.
    [[nodiscard]] const std::string& config_path() const { return config_path_; }

private:
    struct Value {
        std::vector<std::string> texts{};
        std::string origin{};  ///< `--ttl`, `HOLDFAST_TTL`, `/etc/holdfast/holdfast.toml:3`
        Errc blame = Errc::usage;
    };

    [[nodiscard]] Result<void> read_environment(const Purpose& purpose);
    [[nodiscard]] Result<void> read_store_file();
    [[nodiscard]] Result<void> read_file(const Purpose& purpose);
    [[nodiscard]] Result<void> check_all(const Purpose& purpose) const;
    [[nodiscard]] std::optional<Error> check(const Setting& which) const;
    [[nodiscard]] Result<client::Wish> ttl_wish() const;
    [[nodiscard]] bool may_use_default_store() const;
    /// Whether the store comes from a configuration file, and the `run` around this command used another one.
    [[nodiscard]] bool is_from_another_file() const;
    /// `error`, with where the value stands, and blamed on that place.
    [[nodiscard]] std::unexpected<Error> blamed(const Setting& which, Error error) const;

    // Of the purpose, what decides on the store.
    std::string_view name_{};
    bool presents_lease_ = false;
    bool hands_lease_on_ = false;
    bool may_use_memory_ = false;
    std::map<std::string, Value, std::less<>> values_{};
    std::string config_path_{};
    std::vector<client::Policy> policies_{};
    std::vector<DataTable> data_tables_{};
};

}  // namespace holdfast::config
