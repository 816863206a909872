#include "stores/redis/read.hpp"

#include "stores/common/query.hpp"

#include <algorithm>

namespace holdfast::stores::redis {

std::string score_of(Instant instant) { return std::to_string(instant.time_since_epoch().count()); }

Result<std::vector<LockName>> names_in(Value list) {
    std::vector<LockName> names;
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto name = LockName::parse(list[i].text());
        if (!name) return fail(Errc::record_corrupt, "the index of names in Redis contains what is no name");
        names.push_back(std::move(*name));
    }
    return names;
}

namespace {

/// The size of the next page.
std::size_t size_of_page(const ListQuery& query, const std::vector<LockStatus>& found) {
    return query.limit ? std::min(locks_at_once, *query.limit - found.size()) : locks_at_once;
}

/// Adds those of `names` that the query asks for, up to its limit.
Result<void> add_statuses(Remote& remote, std::span<const LockName> names, const ListQuery& query, Deadline deadline,
                          std::vector<LockStatus>& found) {
    while (!names.empty() && size_of_page(query, found) > 0) {
        const auto page = names.first(std::min(size_of_page(query, found), names.size()));
        names = names.subspan(page.size());
        std::vector<Wanted> wanted;
        for (const LockName& name : page) wanted.push_back({.name = name});
        const auto looked = remote.look(wanted, IfMissing::nothing, deadline);
        if (!looked) return std::unexpected(looked.error());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            Sight sight;
            const auto view = view_of(looked->answer.value(), i, wanted[i].name, looked->now, sight);
            if (!view && query.with_unreadable && view.error().code == Errc::record_corrupt) {
                if (wanted[i].name.text().starts_with(query.prefix))
                    found.push_back(kernel::unreadable_status(wanted[i].name, looked->now));
                continue;
            }
            if (!view) return std::unexpected(view.error());
            if (view->record.seq > 0 && is_selected(query, view->record))
                found.push_back(kernel::status_of(view->record, view->waiters, looked->now));
        }
    }
    return {};
}

/// By pages, each beginning after the last name of the one before.
Result<std::vector<LockStatus>> list_by_name(Remote& remote, const ListQuery& query, Deadline deadline) {
    const std::string key = query.with_free ? remote.keys().names() : remote.keys().held();
    // No name has this byte, so all names with the prefix are below it.
    const std::string end = "(" + query.prefix + "\xff";
    const bool is_first_page = query.after.empty() || query.after < query.prefix;
    std::string from = is_first_page ? "[" + query.prefix : "(" + query.after;
    std::vector<LockStatus> found;
    while (const std::size_t size = size_of_page(query, found)) {
        const Command page{"ZRANGEBYLEX", key, from, end, "LIMIT", "0", std::to_string(size)};
        const auto answer = remote.server().ask(page, deadline);
        if (!answer) return std::unexpected(answer.error());
        const auto names = names_in(answer->value());
        if (!names) return std::unexpected(names.error());
        if (names->empty()) return found;
        if (auto added = add_statuses(remote, *names, query, deadline, found); !added)
            return std::unexpected(added.error());
        from = "(" + names->back().text();
    }
    return found;
}

/// The index is in the order of time, so every page reads the names of all locks that changed, and the records of its
/// own.
Result<std::vector<LockStatus>> list_changed(Remote& remote, const ListQuery& query, Deadline deadline) {
    const auto answer = remote.server().ask(
        {"ZRANGEBYSCORE", remote.keys().changed(), score_of(*query.changed_since), "+inf"}, deadline);
    if (!answer) return std::unexpected(answer.error());
    auto names = names_in(answer->value());
    if (!names) return std::unexpected(names.error());
    std::erase_if(*names, [&](const LockName& name) {
        return !name.text().starts_with(query.prefix) || name.text() <= query.after;
    });
    std::ranges::sort(*names);
    std::vector<LockStatus> found;
    if (auto added = add_statuses(remote, *names, query, deadline, found); !added)
        return std::unexpected(added.error());
    return found;
}

}  // namespace

Result<LockStatus> read_status(Remote& remote, const LockName& name, Deadline deadline) {
    const std::vector<Wanted> wanted{{.name = name}};
    const auto looked = remote.look(wanted, IfMissing::nothing, deadline);
    if (!looked) return std::unexpected(looked.error());
    if (!looked->exists()) return kernel::status_of(kernel::blank(name), 0, looked->now);
    Sight sight;
    const auto view = view_of(looked->answer.value(), 0, name, looked->now, sight);
    if (!view) return std::unexpected(view.error());
    return kernel::status_of(view->record, view->waiters, looked->now);
}

Result<std::vector<LockStatus>> read_list(Remote& remote, const ListQuery& query, Deadline deadline) {
    auto found = query.changed_since ? list_changed(remote, query, deadline) : list_by_name(remote, query, deadline);
    if (!found) return found;
    if (const auto same = remote.confirm(deadline); !same) return std::unexpected(same.error());
    return found;
}

}  // namespace holdfast::stores::redis
