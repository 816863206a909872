#pragma once

#include "cli/output.hpp"
#include "cli/settle.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast::cli {

/// How long a command waits for a store that cannot be reached at its start.
struct StoreWait {
    Deadline until{};
    std::stop_token stop{};
    std::function<void(const Error& why)> blocked{};  ///< Called before each pause.
};

/// What a command works with. The store is opened when it is first needed, so that a command line that
/// can never work touches nothing.
class Context {
public:
    /// How long a call to the store may take.
    static constexpr std::chrono::seconds patience{10};

    Context(CommandLine line, Settings settings, Output& out, const Clock& clock);

    const CommandLine line;
    const Settings settings;
    Output& out;
    const Clock& clock;

    /// The word NAME.
    [[nodiscard]] Result<LockName> name() const;
    /// --holder and --user, or this process.
    [[nodiscard]] Holder holder() const;

    /// From now on a store that cannot be reached is tried again and again.
    void wait_for_stores(StoreWait wait) { wait_ = std::move(wait); }
    /// The one store of the command.
    [[nodiscard]] Result<Store*> store();
    /// All of them, where several may be named.
    [[nodiscard]] Result<std::vector<Store*>> stores();
    /// Opens this store instead of those that the settings name. Before any other was opened.
    [[nodiscard]] Result<Store*> use_store(const std::string& url) { return open(url); }
    /// From now on `store` and what follows are about this one of `stores`.
    void work_on(const Store& store);
    /// What the store says of itself; absent before it was opened.
    [[nodiscard]] std::optional<StoreInfo> info() const;

    /// When a call to the store gives up.
    [[nodiscard]] Deadline soon() const;

    /// Sends one request, which creates a store that does not exist. So what is beyond the limits is refused before
    /// that. A request whose outcome is unknown is repeated once where a repeat is harmless.
    [[nodiscard]] Reply apply(const Request& request);
    [[nodiscard]] Result<LockStatus> inspect(const LockName& name);

private:
    [[nodiscard]] Result<Store*> open(const std::string& url);

    std::vector<std::unique_ptr<Store>> stores_{};
    std::optional<StoreWait> wait_{};
};

}  // namespace holdfast::cli
