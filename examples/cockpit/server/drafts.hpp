#pragma once

#include "database.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <string>

/// What was typed and not saved. Whoever may edit sees what anybody had not saved when they lost the lock, so that
/// whoever took over is offered it.
namespace cockpit {

struct Draft {
    std::string project{};
    std::string dashboard{};
    std::string user{};
    std::string text{};
    std::int64_t base_version = 0;
    /// The tab in which it was typed: each has one draft of a dashboard, and replaces no other tab's.
    std::string tab{};
    /// For nobody but its author, who is still at work, or has signed out in the middle of it.
    bool is_private = false;
};

class Drafts {
public:
    /// Which must outlive it.
    explicit Drafts(Database& database) : database_(database) {}

    /// In the place of what this tab had typed before.
    [[nodiscard]] holdfast::Result<boost::json::object> keep_typed(const Draft& draft);
    /// Of a save that was refused: beside all others.
    [[nodiscard]] holdfast::Result<boost::json::object> keep_refused(const Draft& draft);
    /// What this tab had typed is saved now.
    void forget_typed(const Draft& of);

    /// Newest first.
    [[nodiscard]] holdfast::Result<boost::json::array> of(const std::string& project, const std::string& dashboard,
                                                          const std::string& reader);
    /// False if there is no such draft of that user; `of_anybody` is for whoever edits the dashboard.
    [[nodiscard]] holdfast::Result<bool> drop(std::int64_t id, const Draft& where, bool of_anybody);

private:
    [[nodiscard]] holdfast::Result<boost::json::object> keep(const Draft& draft, const std::string& why);

    Database& database_;
};

}  // namespace cockpit
