#pragma once

#include "tidy/source_tree.hpp"

#include <vector>

/// What is true of every file, whatever it does.
namespace holdfast::tidy {

inline constexpr std::size_t most_lines = 450;

[[nodiscard]] Complaints too_long(const std::vector<SourceFile>& files);
[[nodiscard]] Complaints unguarded_headers(const std::vector<SourceFile>& files);
[[nodiscard]] Complaints stray_blanks(const std::vector<SourceFile>& files);
[[nodiscard]] Complaints unfinished_work(const std::vector<SourceFile>& files);

/// Code below `src` that asks the host what time it is, although a caller can bring another clock. Only the programs'
/// own mains and child processes may, and `base/real_clock.hpp`, which says when others do.
[[nodiscard]] Complaints host_clock_uses(const std::vector<SourceFile>& files);
/// Tests that skip themselves without saying that it is because of this machine, so that `make test` lists them
/// nowhere. In tests/conformance a store says what it cannot do, and a sanitizer's build leaves what the release build
/// runs.
[[nodiscard]] Complaints silent_skips(const std::vector<SourceFile>& files);

/// Source lists that CMake gathers by itself.
[[nodiscard]] Complaints globbed_sources(const std::vector<SourceFile>& cmake_files);

/// Sources that no CMakeLists.txt of their folder or a folder above names, so that nobody compiles them.
[[nodiscard]] Complaints unlisted_sources(const std::vector<SourceFile>& sources,
                                          const std::vector<SourceFile>& cmake_files);

}  // namespace holdfast::tidy
