#include "harness/programs.hpp"
#include "holdfast/lease.hpp"
#include "measures/measures.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>

namespace holdfast::bench {

std::string fresh_store(const Site& site, std::string_view kind) {
    const std::string own = LockId::random().text();
    if (kind == "sqlite" || kind == "file") return fmt::format("{}:{}/{}", kind, site.folder.string(), own);
    const auto port = tests::shared_server_port(kind);
    if (kind == "redis") return fmt::format("redis://:{}@127.0.0.1:{}/0?prefix={}", tests::server_password, port, own);
    if (kind == "postgres") return tests::postgres_url(port, "schema=" + tests::random_schema());
    if (kind == "mysql") return tests::mysql_url_for(own, port);
    if (kind == "etcd") return fmt::format("etcd://127.0.0.1:{}/{}", port, own);
    give_up(fmt::format("there is no store {}", kind));
}

}  // namespace holdfast::bench
