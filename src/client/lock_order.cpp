#include "client/lock_order.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <thread>

namespace holdfast::client {
namespace {

struct Entry {
    std::thread::id thread;  ///< Where the lock was asked for; a hold that moves to another thread stays there.
    LockOrder::Key key;
};

struct Books {
    std::mutex mutex;
    std::uint64_t next_id = 1;               ///< Guarded by mutex.
    std::map<std::uint64_t, Entry> entries;  ///< Guarded by mutex.
};

Books& books() {
    static Books all;
    return all;
}

}  // namespace

LockOrder::Place::Place(Place&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
LockOrder::Place::~Place() { leave(); }

void LockOrder::Place::leave() {
    if (id_ == 0) return;
    const std::scoped_lock lock(books().mutex);
    books().entries.erase(std::exchange(id_, 0));
}

Result<LockOrder::Place> LockOrder::enter(const std::string& store, const LockName& name, bool waits) {
    const Key key{store, name};
    const std::scoped_lock lock(books().mutex);
    for (const auto& [id, entry] : books().entries) {
        if (!waits || entry.thread != std::this_thread::get_id()) continue;
        if (entry.key == key)
            return fail(Errc::usage,
                        fmt::format("this thread holds {} already and would wait for itself", name.text()));
        if (key < entry.key)
            return fail(Errc::usage,
                        fmt::format("waiting for {} while holding {} can deadlock: take them together, or in "
                                    "the order of their names",
                                    name.text(), entry.key.second.text()));
    }
    const std::uint64_t id = books().next_id++;
    books().entries.emplace(id, Entry{std::this_thread::get_id(), key});
    return Place(id);
}

}  // namespace holdfast::client
