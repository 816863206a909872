#pragma once

#include "base/url.hpp"
#include "holdfast/store.hpp"
#include "stores/file/file_store.hpp"
#include "stores/file/name_encoding.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <sys/stat.h>

/// A file store in a fresh folder under a clock that moves only when told to, and the means to look at
/// and to damage what it wrote.
namespace holdfast::stores::file {

using namespace std::chrono_literals;

inline LockName lock_name(std::string_view text) { return LockName::parse(text).value(); }
inline Ttl ttl(std::chrono::milliseconds time) { return Ttl::of(time).value(); }

inline Acquire acquire_of(std::string_view name, const Credentials& as, std::chrono::milliseconds time = 30s) {
    return {.name = lock_name(name), .as = as, .holder = {"tester", ""}, .ttl = ttl(time)};
}

inline std::string content_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Overwrites in place, so that the file keeps its mode and its identity. Not truncated first: ext4 would then
/// wait for the disk, thousands of times.
inline void write_file(const std::filesystem::path& path, const std::string& content) {
    std::ofstream(path,
                  std::ios::binary | (std::filesystem::exists(path) ? std::ios::in | std::ios::out : std::ios::out))
        << content;
    std::filesystem::resize_file(path, content.size());
}

/// A manual clock that calls `on_look` before it tells the time since boot, and `on_wall` before the time of day, which
/// the store asks for when it has all guards.
class WatchedClock final : public Clock {
public:
    [[nodiscard]] Instant wall() const override {
        if (on_wall) on_wall();
        return manual.wall();
    }
    [[nodiscard]] Boottime boottime() const override {
        if (on_look) on_look();
        return manual.boottime();
    }
    [[nodiscard]] std::string boot_id() const override { return manual.boot_id(); }
    [[nodiscard]] std::optional<Instant> judges() const override { return manual.judges(); }

    ManualClock manual;
    std::function<void()> on_look{};
    std::function<void()> on_wall{};
};

class FileStoreTest : public testing::Test {
protected:
    [[nodiscard]] const std::filesystem::path& root() const { return root_.path(); }
    [[nodiscard]] std::filesystem::path dir() const { return root() / "store"; }
    [[nodiscard]] std::filesystem::path folder_of(std::string_view name) const {
        return dir() / "locks" / folder_name(lock_name(name));
    }

    /// Most tests need no durability, and run ten times as fast without.
    [[nodiscard]] Result<std::unique_ptr<Store>> try_open(const Clock& clock,
                                                          const std::string& parameters = "?sync=off") const {
        auto url = base::Url::parse("file:" + dir().string() + parameters);
        if (!url) return std::unexpected(url.error());
        return open_file_store(std::move(*url), clock);
    }
    [[nodiscard]] std::unique_ptr<Store> open() const {
        auto store = try_open(clock_);
        EXPECT_TRUE(store) << (store ? "" : store.error().message);
        return store ? std::move(*store) : nullptr;
    }

    [[nodiscard]] static Outcome granted(Store& store, const Request& request) {
        auto reply = store.apply_one(request, Deadline::never());
        EXPECT_TRUE(reply) << (reply ? "" : reply.error().message);
        return reply ? *reply : Outcome{LockStatus{.name = name_of(request)}};
    }
    /// The code of the refusal; fails the test if the request was granted.
    [[nodiscard]] static Errc refused(Store& store, const Request& request) {
        const auto reply = store.apply_one(request, Deadline::never());
        EXPECT_FALSE(reply) << "granted token " << (reply ? reply->lock.token.value : 0);
        return reply ? Errc{} : reply.error().code;
    }

    ManualClock clock_;

private:
    tests::TempFolder root_;
};

/// Everything that a write would change about the files below `root`.
inline std::map<std::string, std::string> snapshot(const std::filesystem::path& root) {
    std::map<std::string, std::string> files;
    if (!std::filesystem::exists(root)) return files;
    const auto add = [&](const std::filesystem::path& path) {
        struct stat info{};
        lstat(path.c_str(), &info);
        std::string facts = std::to_string(info.st_ino) + " " + std::to_string(info.st_mode) + " " +
                            std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + " ";
        if (S_ISREG(info.st_mode)) facts += content_of(path);
        files.emplace(path.string(), std::move(facts));
    };
    add(root);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) add(entry.path());
    return files;
}

}  // namespace holdfast::stores::file
