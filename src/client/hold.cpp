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
    }
    std::abort();
}

Hold::Hold(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Hold::Hold(Hold&&) noexcept = default;
Hold& Hold::operator=(Hold&&) noexcept = default;
Hold::~Hold() = default;

const LockName& Hold::name() const { return core_->lease().name(); }
Store& Hold::store() const { return core_->store(); }
const std::optional<StoreId>& Hold::store_id() const { return core_->store_id(); }
FencingToken Hold::token() const { return core_->lease().lease().token; }
const Credentials& Hold::credentials() const { return core_->lease().credentials(); }
const std::optional<StolenFrom>& Hold::stolen_from() const { return core_->stolen_from(); }
Lease Hold::lease() const { return core_->lease().lease(); }
Boottime Hold::deadline() const { return core_->lease().deadline(); }
std::stop_token Hold::lost() const { return core_->lease().lost(); }
std::optional<Error> Hold::loss() const { return core_->lease().loss(); }
Error Hold::reason_of_expiry() const { return core_->lease().reason_of_expiry(); }
bool Hold::is_stuck() const { return core_->is_stuck(); }
Result<void> Hold::start_renewing() { return core_->start_renewing(); }
Result<void> Hold::release() { return core_->release(); }
void Hold::abandon() { core_->abandon(); }

}  // namespace holdfast
