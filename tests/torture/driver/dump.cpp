#include "torture/driver/dump.hpp"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

namespace torture {
namespace {

using namespace holdfast;

Deadline patient() { return Deadline::in(host_clock(), std::chrono::seconds{60}); }

template <class T>
T must(Result<T> result) {
    if (!result) throw std::runtime_error("the store cannot be read: " + result.error().message);
    return *std::move(result);
}

void dump_lock(Store& store, const LockName& name, Recorder& recorder) {
    const auto events = must(store.history({.name = name}, patient()));
    const LockStatus status = must(store.inspect(name, patient()));
    for (const AuditEvent& event : events) {
        const auto from = event.details.find("from_lock_id");
        recorder.line(fmt::format(R"({{"e":"audit","l":"{}","seq":{},"kind":"{}","tok":{},"id":"{}","from":"{}"}})",
                                  name.text(), event.seq, name_of(event.kind), event.token.value, event.lock_id.text(),
                                  from == event.details.end() ? "" : from->second));
    }
    recorder.line(fmt::format(R"({{"e":"state","l":"{}","seq":{},"tok":{},"id":"{}","chain":"{}"}})", name.text(),
                              status.seq, status.token.value, status.lease ? status.lease->lock_id.text() : "",
                              verify_chain(events, status) ? "ok" : "broken"));
}

}  // namespace

void dump_audit(Store& store, Recorder& recorder) {
    for (const LockStatus& lock : must(store.list({.with_free = true}, patient())))
        dump_lock(store, lock.name, recorder);
}

void dump_journals(const std::filesystem::path& folder, Recorder& recorder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (!entry.path().filename().string().starts_with("register-")) continue;
        std::ifstream journal(entry.path());
        for (std::string line; std::getline(journal, line);)
            recorder.line(line.substr(0, line.find_last_not_of(' ') + 1));
    }
}

}  // namespace torture
