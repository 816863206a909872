// What concerns a store as a whole: doctor, init, and the version that knows it.
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "holdfast/open.hpp"
#include "json/documents.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

constexpr Option strict{"strict", '\0', Takes::nothing,   "", "Fail with status 78 also if the grade is below A.",
                        "",       "",   From::environment};
constexpr std::array doctor_options{strict};

Result<int> run_doctor(Context& context) {
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    const auto findings = (*store)->examine(context.soon());
    const StoreInfo info = (*store)->info();
    Output& out = context.out;
    if (out.style().json) {
        out.document(json::examination(info, findings).done());
    } else {
        out.line(fmt::format("{}: grade {}", printable(info.url), name_of(info.grade)));
        for (const std::string& reason : info.reasons) out.line("  " + printable(reason));
        for (const Finding& finding : findings)
            out.line(fmt::format("{}  {}: {}",
                                 out.coloured(finding.ok ? "ok  " : "FAIL", finding.ok ? Colour::green : Colour::red),
                                 printable(finding.name), printable(finding.detail)));
    }
    const bool sound = std::ranges::all_of(findings, &Finding::ok);
    const bool is_enough = info.grade == Grade::a || !context.settings.on(strict);
    return sound && is_enough ? 0 : row_of(Errc::store_unsafe).exit_status;
}

constexpr Option print{"print", '\0', Takes::nothing,   "", "Print the schema instead, and touch nothing.",
                       "",      "",   From::environment};
constexpr std::array init_options{print};

Result<int> print_schema(Context& context) {
    const auto url = context.settings.store_url();
    if (!url) return std::unexpected(url.error());
    const auto schema = schema_of(*url);
    if (!schema) return std::unexpected(schema.error());
    if (context.out.style().json) {
        context.out.document(json::Object().set("schema", json::Value::text_or_null(*schema)).done());
    } else if (schema->empty()) {
        context.out.note("this store has no schema");
    } else {
        context.out.line(schema->ends_with('\n') ? schema->substr(0, schema->size() - 1) : *schema);
    }
    return 0;
}

Result<int> run_init(Context& context) {
    if (context.settings.on(print)) return print_schema(context);
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    if (const auto created = (*store)->apply({}, context.soon()); !created) return std::unexpected(created.error());
    const StoreInfo info = (*store)->info();
    const std::string store_id = info.store_id ? info.store_id->text() : "";
    if (context.out.style().json) {
        context.out.document(json::Object()
                                 .set("store", json::Value::text(info.url))
                                 .set("store_id", json::Value::text_or_null(store_id))
                                 .set("grade", json::Value::text(name_of(info.grade)))
                                 .done());
    } else if (!context.out.style().quiet) {
        context.out.line(
            fmt::format("{} is ready, store_id {}, grade {}", printable(info.url), store_id, name_of(info.grade)));
    }
    return 0;
}

Result<int> run_version(Context& context) {
    const auto schemes = known_schemes();
    if (!context.out.style().json) {
        context.out.line(fmt::format("holdfast {} (stores: {})", HOLDFAST_VERSION, fmt::join(schemes, ", ")));
        return 0;
    }
    std::vector<json::Value> stores;
    for (const std::string_view scheme : schemes) stores.push_back(json::Value::text(scheme));
    context.out.document(json::Object()
                             .set("version", json::Value::text(HOLDFAST_VERSION))
                             .set("stores", json::Value::array(stores))
                             .done());
    return 0;
}

}  // namespace

constinit const Command doctor_command{
    "doctor",
    "",
    "Is this store safe here? What does it promise?",
    "Looks at everything that the store's promise depends on and shows its grade. A: a grant survives a crash and a "
    "failover "
    "of the store. B: a crash of processes only. C: a grant can be lost in normal operation. Ends with status 78 if "
    "any check fails. Changes nothing.",
    {},
    doctor_options,
    run_doctor};

constinit const Command init_command{"init",
                                     "",
                                     "Create the store now, or print its schema",
                                     "The first use creates a store, and the first change upgrades one that an older "
                                     "version made. So this is only for those who want it earlier, or who let nobody "
                                     "but an administrator create and alter tables.",
                                     {},
                                     init_options,
                                     run_init};

constinit const Command version_command{"version", "",         "Show the version and the stores it knows", "", {},
                                        {},        run_version};

}  // namespace holdfast::cli
