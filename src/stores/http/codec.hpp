#pragma once

#include "holdfast/store.hpp"
#include "json/parse.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Requests and answers of a daemon beyond what `src/json` reads and writes.
namespace holdfast::stores::http {

/// `/v1/lock?name=a%2Fb`; parameters without a value are left out.
class Path {
public:
    explicit Path(std::string_view path) : text_(path) {}

    Path& add(std::string_view name, std::string_view value);
    Path& add(std::string_view name, Instant value);
    Path& add(std::string_view name, std::uint64_t value);

    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::string text_;
};

/// The bodies for `requests`, each with so many that a daemon takes it, and how many those are. At least one.
[[nodiscard]] std::vector<std::pair<std::string, std::size_t>> batches_of(std::span<const Request> requests);

/// Reads the replies to `requests`. An error if the answer does not fit or is that to another request: then nothing in
/// it can be believed.
[[nodiscard]] Result<std::vector<Reply>> read_replies_to(std::span<const Request> requests, const json::Node& node);

/// The body for `/v1/wait`.
[[nodiscard]] std::string wait_body(std::span<const Watch> watches, std::chrono::milliseconds most);

/// One watch that fired.
struct FiredWatch {
    std::size_t index = 0;
    bool is_handed_on = false;
    std::optional<Error> error{};  ///< Why the daemon could not look.
};
/// Reads what `/v1/wait` says of `count` watches.
[[nodiscard]] Result<std::vector<FiredWatch>> read_fired(const json::Node& node, std::size_t count);

}  // namespace holdfast::stores::http
