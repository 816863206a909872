// The names of a project's locks, and the screen that holds one.
#include "holdfast/edit.hpp"

#include <fmt/format.h>

namespace holdfast {

Result<ProjectLocks> ProjectLocks::of(std::string_view project) {
    if (project.empty() || project.find('/') != std::string_view::npos)
        return fail(Errc::name_invalid, "the name of a project is not empty and has no /");
    const auto edit = LockName::parse(fmt::format("project/{}/edit", project));
    if (!edit) return std::unexpected(edit.error());
    const auto propagation = LockName::parse(fmt::format("project/{}/propagation", project));
    if (!propagation) return std::unexpected(propagation.error());
    const auto validation = LockName::parse(fmt::format("project/{}/validation", project));
    if (!validation) return std::unexpected(validation.error());
    return ProjectLocks{*edit, *propagation, *validation};
}

Holder Screen::holder() const { return {id.empty() ? dashboard : dashboard + "#" + id, user}; }

Screen Screen::of(const Holder& holder) {
    const auto end = holder.text.rfind('#');
    if (end == std::string::npos) return {holder.text, "", holder.user};
    return {holder.text.substr(0, end), holder.text.substr(end + 1), holder.user};
}

}  // namespace holdfast
