#pragma once

#include "holdfast/error.hpp"
#include "holdfast/sql.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct sqlite3;

/// The sample's own data, in one SQLite file: projects, dashboards, drafts, who is signed in. Everything but the text
/// of a dashboard is written here; that is written behind the fence only.
namespace cockpit {

using Rows = std::vector<std::vector<holdfast::SqlCell>>;

/// One connection. Threads: `run` may be called from any.
class Database {
public:
    /// Makes the tables and two projects if the file is new. Throws `std::runtime_error` where it cannot be opened.
    explicit Database(const std::string& file);

    /// Runs one statement with `values` for ?1, ?2…
    [[nodiscard]] holdfast::Result<Rows> run(const std::string& sql,
                                             const std::vector<holdfast::SqlValue>& values = {});

private:
    struct Close {
        void operator()(sqlite3* database) const;
    };
    std::mutex mutex_;  ///< Guards the connection.
    std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace cockpit
