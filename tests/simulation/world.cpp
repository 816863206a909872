#include "simulation/world.hpp"

namespace holdfast::simulation {
namespace {

constexpr std::size_t notes_kept = 60;

}  // namespace

// SplitMix64.
std::uint64_t Random::next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void World::after(Millis delay, Action action) {
    due_.push({now_ + std::max(delay, Millis{0}), numbers_++, std::move(action)});
}

void World::carry(const Action& deliver) {
    const auto delay = [&] {
        // Mostly quick, sometimes slower than a lease is long: that is where messages meet what they should not.
        return stormy && random.one_in(8) ? random.between(Millis{0}, Millis{4000})
                                          : random.between(Millis{1}, Millis{20});
    };
    if (stormy && random.one_in(10)) return;
    if (stormy && random.one_in(10)) after(delay(), deliver);
    after(delay(), deliver);
}

bool World::step() {
    if (due_.empty() || failure_) return false;
    // The queue gives only a view of what it is about to forget.
    Due due = std::move(const_cast<Due&>(due_.top()));
    due_.pop();
    now_ = due.at;
    ++steps_;
    due.action();
    return true;
}

void World::broke(std::string what) {
    note("BROKEN: {}", what);
    if (!failure_) failure_ = std::move(what);
}

void World::remember(std::string note) {
    notes_.push_back(fmt::format("{:>8} ms  {}", now_.count(), note));
    if (notes_.size() > notes_kept) notes_.pop_front();
}

}  // namespace holdfast::simulation
