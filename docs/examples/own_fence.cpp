// Fences a resource of one's own: a file with settings, which a holder that was paused must not overwrite. Quoted in
// docs/reference/library.md, built and run by tests/docs.

#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"

#include <cstdint>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>

namespace {

/// What is protected. It keeps the claim of its newest writer beside the content, and compares and writes in one step:
/// here under a mutex, elsewhere in one transaction or under a file lock.
class Settings {
public:
    /// A new holder says so before it reads, so that nobody before it can write after that.
    [[nodiscard]] bool seal(const holdfast::StoreId& store, holdfast::FencingToken token) {
        const std::scoped_lock lock(mutex_);
        if (store_ && *store_ != store) return false;  // Tokens of two stores cannot be compared: a person decides.
        if (token < newest_) return false;
        store_ = store;
        newest_ = token;
        return true;
    }
    [[nodiscard]] bool write(holdfast::FencingToken token, std::string content) {
        const std::scoped_lock lock(mutex_);
        if (token != newest_) return false;
        content_ = std::move(content);
        return true;
    }

private:
    std::mutex mutex_;
    std::optional<holdfast::StoreId> store_;
    holdfast::FencingToken newest_{};
    std::string content_;
};

}  // namespace

int main() {
    const auto store = holdfast::open_store("memory:");
    if (!store) return 1;
    Settings settings;

    auto first = holdfast::hold(**store, "settings/web");
    if (!first || !settings.seal(*first->store_id(), first->token())) return 1;
    const holdfast::FencingToken stale = first->token();
    if (!first->release()) return 1;

    const auto second = holdfast::hold(**store, "settings/web");
    if (!second || !settings.seal(*second->store_id(), second->token())) return 1;
    if (settings.write(stale, "from the past")) return 1;
    if (!settings.write(second->token(), "port = 80")) return 1;
    std::cout << "the stale write was refused\n";
    return 0;
}
