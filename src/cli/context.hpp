#pragma once

#include "cli/output.hpp"
#include "cli/settings.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

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
    /// Who acts: --holder and --user, or this process.
    [[nodiscard]] Holder holder() const;

    /// The one store of the command.
    [[nodiscard]] Result<Store*> store();
    /// All of them, where several may be named.
    [[nodiscard]] Result<std::vector<Store*>> stores();
    /// What the store says of itself; absent before it was opened.
    [[nodiscard]] std::optional<StoreInfo> info() const;

    /// When a call to the store gives up.
    [[nodiscard]] Deadline soon() const;

    /// Sends one request. What is beyond the limits is refused before the store is opened, because
    /// opening creates it. A request whose outcome is unknown is repeated once where a repeat is harmless.
    [[nodiscard]] Reply apply(const Request& request);
    [[nodiscard]] Result<LockStatus> inspect(const LockName& name);

private:
    [[nodiscard]] Result<Store*> open(const std::string& url);

    std::vector<std::unique_ptr<Store>> stores_{};
};

}  // namespace holdfast::cli
