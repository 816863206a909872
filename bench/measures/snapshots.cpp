#include "harness/programs.hpp"
#include "measures/measures.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <random>

namespace holdfast::bench {
namespace {

namespace fs = std::filesystem;

constexpr int folders = 500;
constexpr int files_in_each = 200;
constexpr std::size_t file_size = 20'000;

/// 100,000 files, 2 GB, no two alike.
void make_tree(const fs::path& root) {
    std::mt19937_64 random(12);
    std::string text(file_size, '\0');
    for (int folder = 0; folder < folders; ++folder) {
        const fs::path inner = root / fmt::format("d{}", folder);
        fs::create_directories(inner);
        for (int file = 0; file < files_in_each; ++file) {
            for (std::size_t i = 0; i + sizeof(std::uint64_t) <= text.size(); i += sizeof(std::uint64_t)) {
                const std::uint64_t some = random();
                text.replace(i, sizeof some, reinterpret_cast<const char*>(&some), sizeof some);
            }
            std::ofstream(inner / fmt::format("f{}", file), std::ios::binary) << text;
        }
    }
}

/// A command line for a shell in the repository.
double time_of_shell(const fs::path& repository, const std::string& script) {
    return time_of({"sh", "-c", fmt::format("cd '{}' && {}", repository.string(), script)}, 1);
}

/// What `whole` takes beyond `part`, round by round.
Series beyond(const Series& whole, const Series& part) {
    Series rest = whole;
    for (std::size_t i = 0; i < rest.values.size() && i < part.values.size(); ++i) rest.values[i] -= part.values[i];
    return rest;
}

double blocks_in(const fs::path& folder) {
    return std::stod(output_of({"sh", "-c", fmt::format("du -s '{}' | cut -f1", folder.string())}));
}

}  // namespace

std::vector<Line> measure_snapshots(const Site& site) {
    const fs::path repository = site.folder / "snapshots";
    make_tree(repository / "main");
    const std::string holdfast = "'" + site.holdfast + "'";
    // Each begins with what was written before on the disk, so that it does not pay for another.
    const auto fresh = [&] {
        expect_success(start({"sh", "-c",
                              fmt::format("cd '{}' && rm -rf .holdfast copy restored && {} worktree init -q && sync",
                                          repository.string(), holdfast)}));
    };
    const std::array contenders{
        Contender{"cp -a --reflink=auto",
                  [&] {
                      fresh();
                      return time_of_shell(repository, "cp -a --reflink=auto main copy");
                  }},
        Contender{"the same, synced",
                  [&] {
                      fresh();
                      return time_of_shell(repository, "cp -a --reflink=auto main copy && sync -f copy");
                  }},
        Contender{
            "sha256sum",
            [&] { return time_of_shell(repository, "find main -type f -print0 | xargs -0 -P 2 -n 1000 sha256sum"); }},
        Contender{"snapshot",
                  [&] {
                      fresh();
                      return time_of_shell(repository, holdfast + " worktree snapshot -q");
                  }},
        Contender{"second snapshot",
                  [&] { return time_of_shell(repository, "sync && " + holdfast + " worktree snapshot -q"); }},
        Contender{"restore",
                  [&] {
                      const std::string id =
                          output_of({"sh", "-c",
                                     fmt::format("cd '{}' && {} worktree history --limit 1 | cut -f1",
                                                 repository.string(), holdfast)});
                      return time_of_shell(repository, fmt::format("{} worktree restore {} --to restored -q", holdfast,
                                                                   id.substr(0, id.find('\n'))));
                  }},
    };
    const auto series = alternate("P12", contenders, site.rounds);
    for (int more = 2; more < 10; ++more) static_cast<void>(contenders[4].once());
    const double one = blocks_in(repository / "main");
    const double ten = blocks_in(repository / ".holdfast/snapshots");
    const auto line = [&](std::string measure, std::size_t peer, Series ours, std::optional<Goal> goal) {
        return Line{"P12", std::move(measure), "ms", contenders[peer].name, series[peer], std::move(ours), goal};
    };
    // A copy hashes nothing, so that what hashing alone takes is told apart from the rest.
    return {line("snapshot of 100,000 files, 2 GB, without hashing", 0, beyond(series[3], series[2]), Goal{1.3}),
            line("the same, with hashing", 0, series[3], std::nullopt),
            line("the same, with hashing", 1, series[3], std::nullopt),
            line("hashing alone", 0, series[2], std::nullopt),
            line("restore, without hashing", 0, beyond(series[5], series[2]), Goal{1.3}),
            line("the same, with hashing", 0, series[5], std::nullopt),
            line("second snapshot, nothing changed", 0, series[4], Goal{0.2}),
            Line{"P12", "ten snapshots", "KiB", "the tree", Series{{one}}, Series{{ten}}, Goal{1.1}}};
}

}  // namespace holdfast::bench
