#include "holdfast/version.hpp"

namespace holdfast {

std::string_view library_version() { return HOLDFAST_VERSION; }

}  // namespace holdfast
