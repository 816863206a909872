#include "cli/migrate.hpp"

#include "cli/command.hpp"
#include "config/places.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace holdfast::cli {
namespace {

constexpr std::string_view placeholder_prefix = "HOLDFAST_PLACEHOLDER_";

std::string upper(std::string_view name) {
    std::string result;
    for (const char letter : name)
        result +=
            letter == '-' || letter == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    return result;
}

}  // namespace

Result<migrations::Folder> folder_of(const Context& context) {
    auto folder = migrations::read_folder(context.settings.text(opt::dir));
    if (!folder) return folder;
    if (auto checked = migrations::check_sum(*folder); !checked) return std::unexpected(checked.error());
    return folder;
}

migrations::Placeholders placeholders_of(const Context& context) {
    return [given = context.settings.texts(opt::placeholder)](std::string_view name) -> std::optional<std::string> {
        const std::string begin = std::string(name) + "=";
        // The last one counts, as with every other flag.
        const auto found = std::find_if(given.rbegin(), given.rend(),
                                        [&](const std::string& each) { return each.starts_with(begin); });
        if (found != given.rend()) return found->substr(begin.size());
        return config::variable(std::string(placeholder_prefix) + upper(name));
    };
}

Result<std::optional<std::uint64_t>> version_asked_for(const Context& context) {
    if (!context.settings.given(opt::to_version)) return std::nullopt;
    const std::string text = context.settings.text(opt::to_version);
    std::uint64_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc{} || end != text.data() + text.size())
        return fail(Errc::usage, fmt::format("--to {}: a version is a number", printable(text)));
    return number;
}

Result<int> migrate_under_lock(Context& context, const migrations::Database& database, const Work& work) {
    return under_lock(context, database, [&](guards::FencedSessionOptions session) -> Result<int> {
        migrations::RunnerOptions options;
        options.session = std::move(session);
        options.applied_by = context.holder().display();
        options.notice = notice_on(context.out);
        if (context.out.style().verbose)
            options.progress = [](const migrations::Script& script, const migrations::Statement& statement) {
                Output::warn(fmt::format("holdfast: {}:{}", printable(script.file->path), statement.line));
            };
        auto runner = migrations::Runner::open(std::move(options));
        if (!runner) return std::unexpected(runner.error());
        return work(**runner);
    });
}

std::string label_of(const migrations::MigrationFile& file) { return printable(file.file); }

}  // namespace holdfast::cli
