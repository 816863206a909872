#pragma once

#include "json/request.hpp"
#include "server/exchange.hpp"
#include "server/services.hpp"

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

/// From what a client asked for to what is sent to the store, and from its answer to a document.
namespace holdfast::server {

/// A request that its sender may send, within what the policies allow.
struct Asked {
    Request request;
    std::chrono::milliseconds wait{0};
    /// A renewal that names no time lasts as long as the lease did before, which has to be looked up.
    bool wants_same_ttl = false;
    /// Of an answer by an operator: who sends it. Whether it may depends on who asked, which has to be looked up.
    std::optional<Identity> answers_as{};

    [[nodiscard]] bool needs_look() const { return wants_same_ttl || answers_as; }
};

/// Refused with `denied`, `usage`, `name_invalid` or `config`, and then nothing reaches the store.
[[nodiscard]] Result<Asked> allow(const Services& services, const Exchange& exchange, json::SentRequest sent);

/// When the store has to have answered: by the header Holdfast-Before, at the latest after the daemon's patience.
/// Refused with `store_unavailable` if that time is over, so that a request which comes late does no harm.
[[nodiscard]] Result<Deadline> time_to_answer(const Services& services, const HttpRequest& request);

/// Refused with `store_unavailable` if the header Holdfast-Store names another store than the daemon's.
[[nodiscard]] Result<void> expect_store(const Services& services, const HttpRequest& request);

/// Sets the ttl of every renewal that wants to be as long as before, and decides on the answers of operators. Refused
/// if one of them may not be sent. Blocks.
[[nodiscard]] Result<void> look_up(Store& store, std::vector<Asked>& asked, Deadline deadline);

/// What the client is told: the lock, and the lease where one was granted.
[[nodiscard]] json::Object document_of(const Request& request, const Reply& reply, const StoreInfo& store);
[[nodiscard]] int status_of(const Reply& reply);
[[nodiscard]] HttpReply answer_to(const Request& request, const Reply& reply, const StoreInfo& store);

}  // namespace holdfast::server
