// Part of the short program, instead of yaml.cpp: yaml-cpp sets up the locales of C++ streams at the start of every
// process. `data sync` is left to the full program. See src/cli/short.cpp.

#include "guards/sql/data/yaml.hpp"

namespace holdfast::guards::data {

Result<void> read_yaml(std::string_view /*path*/, std::istream& /*from*/, RowSink& /*sink*/) {
    return fail(Errc::usage, "this program reads no YAML");
}

}  // namespace holdfast::guards::data
