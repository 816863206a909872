#include "holdfast/lease.hpp"
#include "measures/measures.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>

namespace holdfast::bench {

std::string fresh_store(const Site& site, std::string_view kind) {
    if (kind == "sqlite" || kind == "file")
        return fmt::format("{}:{}/{}", kind, site.folder.string(), LockId::random().text());
    return tests::ServerPlace(std::string(kind), tests::shared_server_port(kind)).url();
}

std::string fresh_name() {
    std::string name = "p13" + LockId::random().text();
    std::erase(name, '-');
    return name;
}

}  // namespace holdfast::bench
