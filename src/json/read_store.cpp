#include "json/fields.hpp"
#include "json/store.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::json {
namespace {

Grade grade_in(Fields& in) {
    const std::string text = in.text("grade");
    for (const Grade grade : {Grade::a, Grade::b, Grade::c})
        if (name_of(grade) == text) return grade;
    in.refuse("grade", "is none of the words that it can be");
    return Grade::c;
}

std::vector<std::string> reasons_in(Fields& in) {
    std::vector<std::string> reasons;
    for (const Node& item : in.array("reasons")) {
        const auto* const text = std::get_if<std::string>(&item.value);
        if (text == nullptr) in.refuse("reasons", "is not a list of texts");
        reasons.push_back(text == nullptr ? "" : *text);
    }
    return reasons;
}

Result<StoreProperties> properties_in(Fields& outer) {
    const Node* const node = outer.object_if("properties");
    if (node == nullptr) outer.refuse("properties", "is missing");
    if (outer.error()) return std::unexpected(*outer.error());
    Fields in(*node, outer.path_of("properties"));
    StoreProperties properties{.is_shared = in.is_true("is_shared"),
                               .has_sessions = in.is_true("has_sessions"),
                               .pushes = in.is_true("pushes"),
                               .commits_batches_as_one = in.is_true("commits_batches_as_one"),
                               .shows_only_durable = in.is_true("shows_only_durable"),
                               .clock_resolution = in.duration("clock_resolution_ms")};
    properties.largest_value = in.number_if("largest_value");
    if (in.error()) return std::unexpected(*in.error());
    return properties;
}

Result<std::vector<Finding>> findings_in(Fields& outer) {
    std::vector<Finding> findings;
    for (const Node& item : outer.array("checks")) {
        Fields in(item, outer.path_of(fmt::format("checks[{}]", findings.size())));
        Finding finding{.name = in.text("name"), .ok = in.is_true("ok"), .detail = in.text("detail")};
        if (in.error()) return std::unexpected(*in.error());
        findings.push_back(std::move(finding));
    }
    return findings;
}

}  // namespace

Result<ReadStore> read_store(const Node& node) {
    Fields in(node);
    ReadStore store;
    store.info.url = in.text("store");
    store.info.store_id = in.parsed_if<StoreId>("store_id");
    store.info.grade = grade_in(in);
    store.info.reasons = reasons_in(in);
    store.info.was_used = in.is_true("was_used");
    store.info.may_be_stale = in.is_true("may_be_stale");
    auto findings = findings_in(in);
    if (in.error()) return std::unexpected(*in.error());
    if (!findings) return std::unexpected(findings.error());
    auto properties = properties_in(in);
    if (!properties) return std::unexpected(properties.error());
    store.findings = std::move(*findings);
    store.properties = *properties;
    return store;
}

}  // namespace holdfast::json
