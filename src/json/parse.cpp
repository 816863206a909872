#include "json/parse.hpp"

#include "values/text.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace holdfast::json {
namespace {

using boost::json::error_code;

/// Builds the tree from what Boost's parser finds. Boost's own tree would keep only the last of two equal keys.
class TreeBuilder {
public:
    // Boost asks for these; the text as a whole is bounded already.
    static constexpr std::size_t max_object_size = std::size_t(-1);
    static constexpr std::size_t max_array_size = std::size_t(-1);
    static constexpr std::size_t max_key_size = std::size_t(-1);
    static constexpr std::size_t max_string_size = std::size_t(-1);

    [[nodiscard]] Node&& root() { return std::move(root_); }
    [[nodiscard]] const std::optional<std::string>& duplicate() const { return duplicate_; }

    bool on_document_begin(error_code&) { return true; }
    bool on_document_end(error_code&) { return true; }
    bool on_array_begin(error_code&) { return open(Node{Node::Array{}}); }
    bool on_array_end(std::size_t, error_code&) { return close(); }
    bool on_object_begin(error_code&) { return open(Node{Node::Object{}}); }
    bool on_object_end(std::size_t, error_code& error) {
        if (has_duplicate(std::get<Node::Object>(open_.back().node.value))) {
            error = boost::json::error::syntax;
            return false;
        }
        return close();
    }

    bool on_key_part(boost::json::string_view part, std::size_t, error_code&) { return append(part); }
    bool on_key(boost::json::string_view part, std::size_t, error_code&) {
        append(part);
        open_.back().next_key = std::move(text_);
        text_.clear();
        return true;
    }
    bool on_string_part(boost::json::string_view part, std::size_t, error_code&) { return append(part); }
    bool on_string(boost::json::string_view part, std::size_t, error_code&) {
        append(part);
        Node node{std::move(text_)};
        text_.clear();
        return add(std::move(node));
    }

    bool on_number_part(boost::json::string_view, error_code&) { return true; }
    bool on_int64(std::int64_t number, boost::json::string_view, error_code&) { return add(Node{number}); }
    bool on_uint64(std::uint64_t, boost::json::string_view, error_code&) { return add(Node{Node::OtherNumber{}}); }
    bool on_double(double, boost::json::string_view, error_code&) { return add(Node{Node::OtherNumber{}}); }
    bool on_bool(bool yes, error_code&) { return add(Node{yes}); }
    bool on_null(error_code&) { return add(Node{}); }
    bool on_comment_part(boost::json::string_view, error_code&) { return true; }
    bool on_comment(boost::json::string_view, error_code&) { return true; }

private:
    /// An array or object whose end has not come.
    struct Container {
        Node node{};
        std::string next_key{};
    };

    bool append(boost::json::string_view part) {
        text_.append(part.data(), part.size());
        return true;
    }

    bool open(Node node) {
        open_.push_back({std::move(node), {}});
        return true;
    }

    bool close() {
        Node node = std::move(open_.back().node);
        open_.pop_back();
        return add(std::move(node));
    }

    bool add(Node node) {
        if (open_.empty()) {
            root_ = std::move(node);
        } else if (auto* array = std::get_if<Node::Array>(&open_.back().node.value)) {
            array->push_back(std::move(node));
        } else {
            std::get<Node::Object>(open_.back().node.value)
                .push_back({std::move(open_.back().next_key), std::move(node)});
        }
        return true;
    }

    /// Sorted, because a hostile object has many keys.
    bool has_duplicate(const Node::Object& object) {
        std::vector<std::string_view> keys;
        keys.reserve(object.size());
        for (const Member& member : object) keys.emplace_back(member.key);
        std::ranges::sort(keys);
        const auto twice = std::ranges::adjacent_find(keys);
        if (twice != keys.end()) duplicate_ = std::string(*twice);
        return duplicate_.has_value();
    }

    Node root_{};
    std::vector<Container> open_{};
    std::string text_{};
    std::optional<std::string> duplicate_{};
};

}  // namespace

Result<Node> parse(std::string_view text, const ParseLimits& limits) {
    if (text.size() > limits.bytes)
        return fail(Errc::usage, fmt::format("a document of {} bytes is larger than {}", text.size(), limits.bytes));
    boost::json::parse_options options;
    options.max_depth = limits.depth;
    boost::json::basic_parser<TreeBuilder> parser(options);
    error_code error;
    const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
    if (const auto& key = parser.handler().duplicate())
        return fail(Errc::usage, fmt::format("\"{}\" is there twice", printable(end_of(*key, 80))));
    if (error) return fail(Errc::usage, fmt::format("not JSON at byte {}: {}", read, error.message()));
    if (read != text.size())
        return fail(Errc::usage, fmt::format("not JSON at byte {}: something follows the document", read));
    return parser.handler().root();
}

}  // namespace holdfast::json
