#include "support/process_family.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace holdfast::tests {

std::vector<pid_t> family_of(pid_t root) {
    std::vector<pid_t> family{root};
    for (std::size_t i = 0; i < family.size(); ++i) {
        for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
            const pid_t pid = std::atoi(entry.path().filename().c_str());
            std::ifstream in(entry.path() / "stat");
            std::string stat;
            if (pid <= 0 || !std::getline(in, stat)) continue;
            const auto behind_name = stat.rfind(')');
            if (behind_name != std::string::npos && std::atoi(stat.c_str() + behind_name + 4) == family[i])
                family.push_back(pid);
        }
    }
    return family;
}

void signal_all(const std::vector<pid_t>& pids, int signal) {
    for (const pid_t pid : pids) kill(pid, signal);
}

}  // namespace holdfast::tests
