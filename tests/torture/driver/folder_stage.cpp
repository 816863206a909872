#include "support/temp_folder.hpp"
#include "torture/driver/disk.hpp"
#include "torture/driver/stage.hpp"

#include <optional>

namespace torture {
namespace {

namespace fs = std::filesystem;

/// Pipes are no data, and the index of a write-ahead log belongs to the processes that had it open.
void copy_data(const fs::path& from, const fs::path& to) {
    fs::remove_all(to);
    fs::create_directory(to, from);
    for (const auto& entry : fs::recursive_directory_iterator(from)) {
        const fs::path target = to / fs::relative(entry.path(), from);
        if (entry.is_directory()) fs::create_directory(target, entry.path());
        if (entry.is_regular_file() && entry.path().filename() != "store-shm") fs::copy_file(entry.path(), target);
    }
}

/// A store in files of this host. `restore` begins with a copy and finishes by putting it in place; nobody may use the
/// store in either moment.
class FolderStage final : public Stage {
public:
    FolderStage(std::string scheme, Place place) : scheme_(std::move(scheme)) {
        fs::create_directory(root());
        if (place == Place::small_disk) disk_.emplace(root());
        fs::create_directory(live());
        fs::permissions(live(), fs::perms::owner_all);
    }
    [[nodiscard]] std::string url() const override { return scheme_ + ":" + (live() / "store").string(); }
    [[nodiscard]] std::vector<std::string> faults() const override {
        if (disk_ && disk_->can_be_full()) return {"restore", "disk_full"};
        return {"restore"};
    }
    void begin(const Choice& choice) override {
        if (choice.fault == "disk_full") disk_->fill();
        if (choice.fault == "restore") copy_data(live(), copy());
    }
    void finish(const Choice& choice) override {
        if (choice.fault == "disk_full") disk_->make_room();
        if (choice.fault == "restore") copy_data(copy(), live());
    }

private:
    [[nodiscard]] fs::path root() const { return folder_.path() / "disk"; }
    [[nodiscard]] fs::path live() const { return root() / "live"; }
    [[nodiscard]] fs::path copy() const { return folder_.path() / "copy"; }

    std::string scheme_;
    holdfast::tests::TempFolder folder_;
    std::optional<Disk> disk_{};  ///< After the folder that it is in.
};

}  // namespace

std::unique_ptr<Stage> set_up_folder(const std::string& scheme, Place place) {
    return std::make_unique<FolderStage>(scheme, place);
}

}  // namespace torture
