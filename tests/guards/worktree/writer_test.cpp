// Goal: a writer that does anything to the tree while a quiesced snapshot is taken is caught, and nothing is published.
// Method: seeded runs; in each, one change at a random moment of the copy. `make worktree-long` runs many.
#include "guards/worktree/proof.hpp"
#include "guards/worktree/snapshot_fixture.hpp"
#include "support/run_settings.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

using testing::IsEmpty;
namespace fs = std::filesystem;

/// A file that was written through a mapping before the snapshot began, and may be written again.
class Mapping {
public:
    explicit Mapping(const fs::path& path) {
        const base::Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
        void* at = mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
        if (at != MAP_FAILED) byte_ = static_cast<volatile char*>(at);
        put('A');
    }
    ~Mapping() {
        if (byte_ != nullptr) munmap(const_cast<char*>(byte_), 1);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    void put(char c) const {
        if (byte_ != nullptr) *byte_ = c;
    }
    [[nodiscard]] bool works() const { return byte_ != nullptr; }

private:
    volatile char* byte_ = nullptr;
};

class Writer : public SnapshotFixture {
protected:
    /// Where a write through a mapping leaves no stamp, one that comes before its file is read is part of the snapshot.
    const bool sees_mappings_ = settle(repository_.open_worktree("free")->get())->ctime_is_trusted;

    /// One change of the tree. All of them leave names and sizes as a careless look would expect them, where they can.
    std::string change(std::mt19937_64& random, const Mapping& mapped) {
        const int file = static_cast<int>(random() % 300);
        const auto path = in("free", fmt::format("d{}/f{}", file % 7, file));
        const auto touch_back = [&](auto&& action) {
            struct stat before{};
            stat(path.c_str(), &before);
            action();
            const timespec times[2] = {before.st_atim, before.st_mtim};
            utimensat(AT_FDCWD, path.c_str(), times, 0);
        };
        switch (random() % (sees_mappings_ ? 9 : 8)) {
            case 0: write(path, "other"); return "rewrote";
            case 1: touch_back([&] { write(path, std::string(read(path).size(), 'x')); }); return "touched back";
            case 2: fs::rename(path, in("free", "moved")); return "renamed";
            case 3:
                fs::rename(path, in("free", "moved"));
                fs::rename(in("free", "moved"), path);
                return "renamed to and fro";
            case 4: fs::resize_file(path, 1); return "truncated";
            case 5: write(in("free", "d3/new"), "new"); return "added";
            case 6: fs::remove(path); return "removed";
            case 7: chmod(path.c_str(), 0600); return "changed the mode";
            default: mapped.put('B'); return "wrote through mmap";
        }
    }
};

TEST_F(Writer, IsCaughtWhateverItDoesAndWhenever) {
    const std::uint64_t seed = tests::seed_of("Writer");
    std::mt19937_64 random(seed);
    for (int round = 0; round < tests::scaled(8); ++round) {
        fs::remove_all(in("free"));
        fill("free", 300);
        write(in("free", "d0/mapped"), "........");
        const Mapping mapped(in("free", "d0/mapped"));
        if (!mapped.works()) FAIL() << "no mapping of a file";
        const auto moment = random() % 5;
        std::uint64_t calls = 0;
        std::string what;
        SnapshotOptions options;
        options.progress = [&](const Progress& now) {
            if (now.step == "copy" && calls++ == moment) what = change(random, mapped);
        };
        const auto taken = snapshot("free", options);
        ASSERT_FALSE(what.empty());
        ASSERT_FALSE(taken) << "round " << round << ": the writer " << what << " at " << moment;
        EXPECT_EQ(taken.error().code, Errc::consistency_unavailable) << what << ": " << taken.error().message;
        EXPECT_THAT(visible(), IsEmpty()) << what;
        EXPECT_THAT(left_over(), IsEmpty()) << what;
    }
}

TEST_F(Writer, ThatWritesThroughAMappingAllTheTimeIsCaught) {
    fill("free", 300);
    write(in("free", "d0/mapped"), "........");
    const Mapping mapped(in("free", "d0/mapped"));
    SnapshotOptions options;
    options.progress = [&](const Progress& now) { mapped.put(static_cast<char>('a' + now.entries / 64 % 26)); };
    const auto taken = snapshot("free", options);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Errc::consistency_unavailable);
}

TEST_F(Writer, ThatEndedJustBeforeIsNotMistakenForOneThatGoesOn) {
    for (int round = 0; round < 5; ++round) {
        fill("free", 20);
        const auto taken = snapshot("free");
        EXPECT_TRUE(taken) << taken.error().message;
    }
}

TEST_F(Writer, ThatPutsAnotherFolderInThePlaceOfTheWorktreeIsCaught) {
    fill("free", 100);
    bool done = false;
    SnapshotOptions options;
    options.progress = [&](const Progress& now) {
        if (now.step != "copy" || std::exchange(done, true)) return;
        fs::rename(in("free"), folder_.path() / "other");
        fs::create_directory(in("free"));
    };
    const auto taken = snapshot("free", options);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Errc::consistency_unavailable);
}

}  // namespace
}  // namespace holdfast::guards::worktree
