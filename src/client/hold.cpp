#include "holdfast/hold.hpp"

#include "client/hold_core.hpp"

#include <cstdlib>

namespace holdfast {

std::string_view name_of(HoldEventKind kind) {
    switch (kind) {
        case HoldEventKind::acquiring: return "lock:acquiring";
        case HoldEventKind::blocked: return "lock:blocked";
        case HoldEventKind::acquired: return "lock:acquired";
        case HoldEventKind::renewed: return "lock:renewed";
        case HoldEventKind::released: return "lock:released";
        case HoldEventKind::expired: return "lock:expired";
        case HoldEventKind::stolen: return "lock:stolen";
        case HoldEventKind::broken: return "lock:broken";
        case HoldEventKind::transferred: return "lock:transferred";
        case HoldEventKind::lost: return "lock:lost";
        case HoldEventKind::renew_failed: return "lock:renew_failed";
    }
    std::abort();
}

Hold::Hold(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Hold::Hold(Hold&& other) noexcept : core_(std::move(other.core_)) {
    if (core_) core_->place_in_order(this);
}
Hold& Hold::operator=(Hold&& other) noexcept {
    core_ = std::move(other.core_);
    if (core_) core_->place_in_order(this);
    return *this;
}
Hold::~Hold() = default;

/// In the order of locks, a hold that counts for no thread yet counts from now on for the thread that uses it.
Hold::Core& Hold::core() const {
    core_->take_into_use();
    return *core_;
}

const LockName& Hold::name() const { return core().lease().name(); }
Store& Hold::store() const { return core().store(); }
const std::optional<StoreId>& Hold::store_id() const { return core().store_id(); }
FencingToken Hold::token() const { return core().lease().lease().token; }
const Credentials& Hold::credentials() const { return core().lease().credentials(); }
const std::optional<StolenFrom>& Hold::stolen_from() const { return core().stolen_from(); }
Lease Hold::lease() const { return core().lease().lease(); }
Boottime Hold::deadline() const { return core().lease().deadline(); }
std::stop_token Hold::lost() const { return core().lease().lost(); }
std::optional<Error> Hold::loss() const { return core().lease().loss(); }
Error Hold::reason_of_expiry() const { return core().lease().reason_of_expiry(); }
bool Hold::is_stuck() const { return core().is_stuck(); }
Result<void> Hold::start_renewing() { return core().start_renewing(); }
Result<void> Hold::release() { return core().release(); }
void Hold::abandon() { core().abandon(); }

}  // namespace holdfast
