#include "client/lock_order.hpp"

#include "client/store_identity.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace holdfast::client {
namespace {

struct Entry {
    std::optional<std::thread::id> thread;  ///< Absent while it counts for nobody.
    const Store* store;                     ///< Only compared: the store may be gone.
    std::optional<StoreId> store_id;
    LockName name;
};

struct HeldLocksRegistry {
    std::mutex mutex;
    std::uint64_t next_id = 1;               ///< Guarded by mutex.
    std::map<std::uint64_t, Entry> entries;  ///< Guarded by mutex.
};

HeldLocksRegistry& held_locks() {
    static HeldLocksRegistry all;
    return all;
}

std::vector<Entry> entries_of_this_thread() {
    std::vector<Entry> own;
    const std::scoped_lock lock(held_locks().mutex);
    for (const auto& [id, entry] : held_locks().entries)
        if (entry.thread == std::this_thread::get_id()) own.push_back(entry);
    return own;
}

/// The memory of this thread's stack.
class Stack {
public:
    Stack() {
        pthread_attr_t attributes;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
        void* begin = nullptr;
        std::size_t size = 0;
        if (pthread_attr_getstack(&attributes, &begin, &size) == 0) {
            begin_ = reinterpret_cast<std::uintptr_t>(begin);  // NOLINT: compared, not used.
            end_ = begin_ + size;
        }
        pthread_attr_destroy(&attributes);
    }
    [[nodiscard]] bool has(const void* place) const {
        const auto at = reinterpret_cast<std::uintptr_t>(place);  // NOLINT: compared, not used.
        return begin_ <= at && at < end_;
    }

private:
    std::uintptr_t begin_ = 0;
    std::uintptr_t end_ = 0;
};

bool is_on_stack_of_this_thread(const void* place) {
    thread_local const Stack stack;
    return stack.has(place);
}

Result<void> check_wait(Store& store, const LockName& name, const Clock& clock) {
    std::optional<StoreId> store_id;
    for (const Entry& held : entries_of_this_thread()) {
        if (held.store != &store && !store_id) {
            const auto ids = identify(std::array{&store}, clock);
            if (!ids) return std::unexpected(ids.error());
            store_id = ids->front();
        }
        const bool same_store = held.store == &store || held.store_id == store_id;
        if (same_store && held.name == name)
            return fail(Errc::usage,
                        fmt::format("this thread holds {} already and would wait for itself", name.text()));
        if (same_store ? name < held.name : held.store_id && *store_id < *held.store_id)
            return fail(Errc::usage,
                        fmt::format("waiting for {} while holding {} can deadlock: take them together, or in "
                                    "the order of their stores' ids and then of their names",
                                    name.text(), held.name.text()));
    }
    return {};
}

}  // namespace

LockOrder::Registration::Registration(Registration&& other) noexcept
    : id_(other.id_.exchange(0)), counts_for_nobody_(other.counts_for_nobody_.load()) {}
LockOrder::Registration::~Registration() { withdraw(); }

void LockOrder::Registration::set_store_id(const StoreId& store_id) const {
    const std::scoped_lock lock(held_locks().mutex);
    if (const auto entry = held_locks().entries.find(id_); entry != held_locks().entries.end())
        entry->second.store_id = store_id;
}

void LockOrder::Registration::move_to(const void* place) {
    // Not registered, and where the stack is takes a file of the kernel.
    if (id_ == 0) return;
    const auto owner = is_on_stack_of_this_thread(place) ? std::optional(std::this_thread::get_id()) : std::nullopt;
    const std::scoped_lock lock(held_locks().mutex);
    const auto entry = held_locks().entries.find(id_);
    if (entry == held_locks().entries.end()) return;
    entry->second.thread = owner;
    counts_for_nobody_ = !owner;
}

void LockOrder::Registration::take_into_use() {
    if (!counts_for_nobody_) return;
    const std::scoped_lock lock(held_locks().mutex);
    if (!counts_for_nobody_.exchange(false)) return;
    if (const auto entry = held_locks().entries.find(id_); entry != held_locks().entries.end())
        entry->second.thread = std::this_thread::get_id();
}

void LockOrder::Registration::withdraw() {
    if (id_ == 0) return;
    const std::scoped_lock lock(held_locks().mutex);
    held_locks().entries.erase(id_.exchange(0));
}

Result<LockOrder::Registration> LockOrder::enter(Store& store, const LockName& name, bool waits,
                                                 const HoldOptions& options) {
    if (options.order_check == OrderCheck::off) return Registration(0);
    if (waits)
        if (auto allowed = check_wait(store, name, *options.clock); !allowed) return std::unexpected(allowed.error());
    const std::scoped_lock lock(held_locks().mutex);
    const std::uint64_t id = held_locks().next_id++;
    held_locks().entries.emplace(id, Entry{std::this_thread::get_id(), &store, std::nullopt, name});
    return Registration(id);
}

}  // namespace holdfast::client
