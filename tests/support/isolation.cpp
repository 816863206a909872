#include "support/isolation.hpp"

#include "support/process.hpp"
#include "support/temp_folder.hpp"

#include <cstdlib>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace holdfast::tests {

bool can_give_away() {
    constexpr uid_t anybody = 12345;
    const TempFolder probe;
    return chown(probe.path().c_str(), anybody, anybody) == 0;
}

AsPlainUser::AsPlainUser(const std::filesystem::path& folder) : was_root_(geteuid() == 0) {
    if (!was_root_) return;
    constexpr uid_t nobody = 65534;
    bool given = chown(folder.c_str(), nobody, nobody) == 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        given = lchown(entry.path().c_str(), nobody, nobody) == 0 && given;
    is_root_ = !given || seteuid(nobody) != 0;
}

AsPlainUser::~AsPlainUser() {
    if (was_root_ && seteuid(0) != 0) std::abort();
}

int in_own_mounts(const std::function<int()>& work) {
    Process child = Process::fork([&] {
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
            return no_mounts;
        return work();
    });
    return child.wait().status.value_or(-1);
}

bool can_run(std::vector<std::string> command) {
    command.emplace_back("/bin/true");
    return Process::run(command).wait() == Exit{.status = 0};
}

}  // namespace holdfast::tests
