#pragma once

#include "holdfast/store.hpp"
#include "torture/client/recorder.hpp"

#include <filesystem>

namespace torture {

/// Writes what the store has in the end into the history: every event of every lock, and the locks themselves. Throws
/// if it cannot be read.
void dump_audit(holdfast::Store& store, Recorder& recorder);

/// Adds the journals of the registers in `folder`.
void dump_journals(const std::filesystem::path& folder, Recorder& recorder);

}  // namespace torture
