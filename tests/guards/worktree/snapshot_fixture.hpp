#pragma once

#include "guards/worktree/files.hpp"
#include "guards/worktree/snapshot.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

namespace holdfast::guards::worktree {

/// A repository with an exclusive worktree `main` and a shared one `free`, and a store whose clock the test moves.
class SnapshotFixture : public testing::Test {
protected:
    SnapshotFixture() : repository_(*Repository::create(folder_.path().string(), clock_)) {
        const auto guard = repository_.guard(Deadline::never());
        EXPECT_TRUE(repository_.add_worktree(*guard, "main", false, "me"));
        EXPECT_TRUE(repository_.add_worktree(*guard, "free", true, "me"));
        store_ = *open_store("memory:", clock_);
    }

    [[nodiscard]] std::filesystem::path in(const std::string& worktree, const std::string& path = "") const {
        return folder_.path() / worktree / path;
    }
    void write(const std::filesystem::path& path, std::string_view text) const {
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
    }
    [[nodiscard]] static std::string read(const std::filesystem::path& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void fill(const std::string& worktree, int files) const {
        for (int i = 0; i < files; ++i)
            write(in(worktree, fmt::format("d{}/f{}", i % 7, i)), fmt::format("file {}", i));
    }

    [[nodiscard]] Deadline soon() const { return Deadline::in(clock_, std::chrono::seconds{10}); }

    /// A lease on `main`, sealed.
    Claim take_over(std::string_view who, std::chrono::milliseconds ttl = std::chrono::seconds{30}) {
        const Acquire acquire = tests::by(who, lock_of("main"), ttl);
        const auto granted = store_->apply_one(acquire, soon());
        EXPECT_TRUE(granted) << granted.error().message;
        const Claim claim{granted->lock.token, acquire.as.lock_id, std::string(who)};
        const auto sealed = seal(repository_, "main", claim, *store_, soon());
        EXPECT_TRUE(sealed) << sealed.error().message;
        return claim;
    }
    [[nodiscard]] SnapshotOptions under(const Claim& claim) const {
        SnapshotOptions options;
        options.claim = claim;
        options.store = store_.get();
        options.actor = claim.holder_id;
        return options;
    }
    [[nodiscard]] Result<Snapshot> snapshot(const std::string& worktree, const SnapshotOptions& options = {}) const {
        return take_snapshot(repository_, worktree, options);
    }

    [[nodiscard]] std::filesystem::path payload(const Snapshot& taken, const std::string& path = "") const {
        return control() / "snapshots" / taken.descriptor.snapshot_id / payload_folder / path;
    }
    [[nodiscard]] std::filesystem::path control() const { return folder_.path() / control_folder; }
    [[nodiscard]] std::string head(const std::string& worktree) const {
        const auto registry = repository_.registry();
        return find_row(*registry, worktree)->head;
    }
    [[nodiscard]] std::vector<std::string> visible() const {
        std::vector<std::string> ids;
        const auto all = repository_.snapshots();
        for (const auto& each : *all) ids.push_back(each.snapshot_id);
        return ids;
    }
    /// What unfinished work would have left.
    [[nodiscard]] std::vector<std::string> left_over() const {
        std::vector<std::string> names;
        for (const char* folder : {"snapshots", "descriptors", "intents"})
            for (const auto& each : std::filesystem::directory_iterator(control() / folder)) {
                const std::string name = each.path().filename().string();
                if (name.starts_with(".tmp-") || std::string_view(folder) == "intents") names.push_back(name);
            }
        return names;
    }

    tests::TempFolder folder_;
    ManualClock clock_;
    Repository repository_;
    std::unique_ptr<Store> store_;
};

}  // namespace holdfast::guards::worktree
