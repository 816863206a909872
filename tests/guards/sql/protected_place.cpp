#include "guards/sql/protected_place.hpp"

#include "support/matchers.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"

#include <fstream>

namespace holdfast::tests {

ProtectedPlace::ProtectedPlace(SqlDialect dialect) : dialect_(dialect) {
    switch (dialect) {
        case SqlDialect::sqlite: {
            const auto file = folder_.path() / "app.db";
            std::ofstream(file).close();
            url_ = "sqlite:" + file.string();
            break;
        }
        case SqlDialect::postgres: {
            const auto port = shared_server_port("postgres");
            const std::string schema = random_schema();
            ByHand{port}("CREATE SCHEMA " + schema);
            url_ = postgres_url(port, "options=-csearch_path%3D" + schema);
            break;
        }
        case SqlDialect::mysql: url_ = mysql_.emplace(shared_server_port("mysql")).url(); break;
    }
    shell_ = connect();
}

std::unique_ptr<sql::Session> ProtectedPlace::connect() const {
    return must(sql::open_session(url_, sql::IfAbsent::refuse, host_clock(),
                                  Deadline::in(host_clock(), std::chrono::seconds{30})));
}

std::string ProtectedPlace::operator()(const std::string& sql) {
    const auto answer = shell_->run({.text = sql, .values = {}}, Deadline::never());
    if (!answer) throw std::runtime_error(answer.error().code + ": " + answer.error().message);
    return answer->rows.empty() ? "" : answer->rows[0].at(0).value_or("NULL");
}

FenceClaim claim_with(std::uint64_t token, LockId lock_id) {
    static const StoreId store_id = StoreId::random();
    return {lock("app"), store_id, FencingToken{token}, lock_id};
}

std::string name_of(SqlDialect dialect) {
    switch (dialect) {
        case SqlDialect::sqlite: return "sqlite";
        case SqlDialect::postgres: return "postgres";
        case SqlDialect::mysql: break;
    }
    return "mysql";
}

}  // namespace holdfast::tests
