#pragma once

/// The documents that programs read: of the command line, of the daemon, of the event stream. Their fields are a
/// contract: fields are added, never renamed or removed.
#include "json/error.hpp"
#include "json/event.hpp"
#include "json/fence.hpp"
#include "json/lock.hpp"
#include "json/migrate.hpp"
#include "json/run.hpp"
#include "json/store.hpp"
