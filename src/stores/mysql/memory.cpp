#include "stores/mysql/memory.hpp"

#include "kernel/step.hpp"

namespace holdfast::stores::mysql {
namespace {

/// Of each generation.
constexpr std::size_t most_locks = 4096;
/// How many unknown locks are read first when one was not as new as it seemed.
constexpr int reads_after_mistake = 32;

}  // namespace

std::optional<Memory::Known> Memory::guess(const LockName& name) {
    const std::scoped_lock lock(mutex_);
    for (const Locks* locks : {&newer_, &older_})
        if (const auto found = locks->find(name.text()); found != locks->end()) return found->second;
    if (reads_first_ == 0) return Known{kernel::blank(name)};
    --reads_first_;
    return std::nullopt;
}

void Memory::remember(Known lock) {
    const std::string name = lock.record.name.text();
    keep(name, std::move(lock));
}

void Memory::avoid(const LockName& name) { keep(name.text(), std::nullopt); }

void Memory::took_for_new() {
    const std::scoped_lock lock(mutex_);
    reads_first_ = reads_after_mistake;
}

void Memory::keep(const std::string& name, std::optional<Known> lock) {
    const std::scoped_lock guard(mutex_);
    if (newer_.size() >= most_locks) {
        older_ = std::move(newer_);
        newer_.clear();
    }
    newer_.insert_or_assign(name, std::move(lock));
}

}  // namespace holdfast::stores::mysql
