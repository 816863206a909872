#pragma once

#include "server/daemon.hpp"
#include "support/temp_folder.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::server_test {

/// A token file, and a daemon that believes it.
class Guarded {
public:
    explicit Guarded(const cli_test::Args& more = {});

    /// Adds an entry and gives its token. The daemon follows by itself.
    std::string token(std::string_view user, const std::vector<std::string>& grants, bool by_proxy = false);
    /// Of the token's entry.
    void revoke(const std::string& token);

    /// With `token` in a header, unless it is empty.
    [[nodiscard]] Answer call(const std::string& token, std::string_view method, std::string_view target,
                              std::string_view body = {}, Client::Headers headers = {}) const;
    [[nodiscard]] Answer post(const std::string& token, std::string_view target, std::string_view body) const {
        return call(token, "POST", target, body);
    }
    [[nodiscard]] Answer get(const std::string& token, std::string_view target) const {
        return call(token, "GET", target);
    }

    tests::TempFolder folder{};
    const std::string path;
    Daemon daemon;
};

}  // namespace holdfast::server_test
