#include "support/temp_folder.hpp"
#include "torture/driver/stage.hpp"

#include <filesystem>

namespace torture {
namespace {

namespace fs = std::filesystem;

/// A store in files of this host. `restore` begins with a copy and finishes by putting it in place; nobody may use the
/// store in either moment.
class FolderStage final : public Stage {
public:
    explicit FolderStage(std::string scheme) : scheme_(std::move(scheme)) {
        fs::create_directory(live());
        fs::permissions(live(), fs::perms::owner_all);
    }
    [[nodiscard]] std::string url() const override { return scheme_ + ":" + (live() / "store").string(); }
    [[nodiscard]] std::vector<std::string> faults() const override { return {"restore"}; }

    void begin(const Choice&) override {
        fs::remove_all(copy());
        fs::create_directory(copy());
        for (const auto& entry : fs::recursive_directory_iterator(live())) {
            const fs::path target = copy() / fs::relative(entry.path(), live());
            // Pipes are no data, and the index of a write-ahead log belongs to the processes that had it open.
            if (entry.is_directory()) fs::create_directory(target, entry.path());
            if (entry.is_regular_file() && entry.path().filename() != "store-shm") fs::copy_file(entry.path(), target);
        }
    }
    void finish(const Choice&) override {
        fs::remove_all(live());
        fs::rename(copy(), live());
    }

private:
    [[nodiscard]] fs::path live() const { return folder_.path() / "live"; }
    [[nodiscard]] fs::path copy() const { return folder_.path() / "copy"; }

    std::string scheme_;
    holdfast::tests::TempFolder folder_;
};

}  // namespace

std::unique_ptr<Stage> set_up_folder(const std::string& scheme) { return std::make_unique<FolderStage>(scheme); }

}  // namespace torture
