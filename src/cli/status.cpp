#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/show.hpp"
#include "json/documents.hpp"

#include <array>

namespace holdfast::cli {
namespace {

Result<int> show_one(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto status = context.inspect(*name);
    if (!status) return std::unexpected(status.error());
    if (context.out.style().json) {
        context.out.document(json::lock(*status, *context.info()).done());
    } else {
        show_lock(context.out, *status, *context.info());
    }
    return 0;
}

Result<int> show_all(Context& context) {
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    const auto locks = (*store)->list({}, context.soon());
    if (!locks) return std::unexpected(locks.error());
    if (!context.out.style().json) {
        show_locks(context.out, *locks);
        return 0;
    }
    std::vector<json::Value> items;
    for (const LockStatus& status : *locks) items.push_back(json::lock(status, *context.info()).done());
    context.out.document(json::Object().set("locks", json::Value::array(items)).done());
    return 0;
}

Result<int> run(Context& context) { return context.line.words.empty() ? show_all(context) : show_one(context); }

constexpr std::array words{Word{"NAME", Word::Need::optional}};

}  // namespace

constinit const Command status_command{
    "status",
    "ls",
    "Show one lock, or all that are held",
    "Shows who holds the lock, since when, for what, and until when. Without NAME, a line for each lock that is held. "
    "Never writes, and a lock that was never used is free.",
    words,
    {},
    run};

}  // namespace holdfast::cli
