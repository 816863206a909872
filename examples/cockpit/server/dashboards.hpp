#pragma once

#include "database.hpp"
#include "holdfast/edit.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>

/// Projects and the texts of their dashboards.
namespace cockpit {

/// A text on its way into the database. It has an outcome after `write_in` was called.
struct TextToSave {
    std::string project{};
    std::string dashboard{};
    std::string text{};
    std::int64_t base_version = 0;
    std::string by{};

    std::string saved_at{};
    std::optional<std::int64_t> newer{};  ///< The version that somebody saved after `base_version`.

    /// For the transaction behind the fence. Refused if the text began from an older version.
    [[nodiscard]] holdfast::Result<void> write_in(holdfast::FencedDatabase& database);
};

class Dashboards {
public:
    /// Which must outlive it.
    explicit Dashboards(Database& database) : database_(database) {}

    [[nodiscard]] holdfast::Result<boost::json::array> by_project();
    [[nodiscard]] holdfast::Result<boost::json::object> read(const std::string& project, const std::string& dashboard);

private:
    Database& database_;
};

}  // namespace cockpit
