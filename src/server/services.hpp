#pragma once

#include "server/authorize.hpp"
#include "server/batcher.hpp"
#include "server/log.hpp"
#include "server/loop.hpp"
#include "server/observer.hpp"
#include "server/serve.hpp"
#include "server/workers.hpp"

namespace holdfast::server {

class DaemonMetrics;
class EventFeed;
class WaitingRoom;

/// What the handlers work with. Everything outlives every request.
struct Services {
    Store& store;
    const Clock& clock;
    const ServeOptions& options;
    Loop& loop;
    Workers& readers;  ///< For calls of the store that change nothing.
    Batcher& batcher;
    Authorizer& authorizer;
    ServerObserver& observer;
    DaemonMetrics& metrics;
    Log& log;
    WaitingRoom& waiting;
    EventFeed& events;
    bool is_stopping = false;
};

}  // namespace holdfast::server
