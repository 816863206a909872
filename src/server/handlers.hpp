#pragma once

#include "server/exchange.hpp"
#include "server/services.hpp"

/// One function for each endpoint of `routes()`.
namespace holdfast::server {

// One request of the protocol. The path names its kind.
void handle_request(Services& services, const ExchangePtr& exchange);
void handle_batch(Services& services, const ExchangePtr& exchange);
// Until one of many watches fires.
void handle_wait(Services& services, const ExchangePtr& exchange);

// Reading.
void handle_lock(Services& services, const ExchangePtr& exchange);
void handle_locks(Services& services, const ExchangePtr& exchange);
void handle_overrides(Services& services, const ExchangePtr& exchange);
void handle_history(Services& services, const ExchangePtr& exchange);
void handle_gate(Services& services, const ExchangePtr& exchange);
void handle_store(Services& services, const ExchangePtr& exchange);
void handle_events(Services& services, const ExchangePtr& exchange);

// The daemon itself.
void handle_session(Services& services, const ExchangePtr& exchange);
void handle_sign_in(Services& services, const ExchangePtr& exchange);
void handle_sign_out(Services& services, const ExchangePtr& exchange);
void handle_metrics(Services& services, const ExchangePtr& exchange);
void handle_health(Services& services, const ExchangePtr& exchange);
void handle_ready(Services& services, const ExchangePtr& exchange);
void handle_openapi(Services& services, const ExchangePtr& exchange);
void handle_console(Services& services, const ExchangePtr& exchange);

}  // namespace holdfast::server
