#include "guards/edit/transaction.hpp"

namespace holdfast::guards::edit {
namespace {

/// The transaction keeps rows locked meanwhile.
constexpr std::chrono::seconds to_ask{5};

Result<void> expect_current(Store& store, const FenceClaim& claim, const std::vector<LockName>& unless_held,
                            Deadline deadline) {
    const Check check{claim.name, claim.token, claim.lock_id, unless_held};
    const auto soon = std::min(deadline.remaining(store.clock()), std::chrono::milliseconds{to_ask});
    const auto current = store.apply_one(check, Deadline::in(store.clock(), soon));
    if (current) return {};
    Error error = current.error();
    // A question that was not answered has written nothing, and neither has its transaction.
    if (error.code == Errc::outcome_unknown) error.code = Errc::store_unavailable;
    return std::unexpected(std::move(error));
}

}  // namespace

Result<void> write_in_transaction(Store& store, FencedDatabase& database, const std::vector<LockName>& unless_held,
                                  const EditWrite& write, Deadline deadline) {
    if (auto begun = database.begin(deadline); !begun) return begun;
    // Only now, when the fence keeps the next holder and the next propagation out until the commit: asked before, the
    // answer could be old when the transaction begins.
    auto done = expect_current(store, database.claim(), unless_held, deadline);
    if (done) done = write(database);
    if (done) return database.commit(deadline);
    database.rollback();
    return done;
}

}  // namespace holdfast::guards::edit
