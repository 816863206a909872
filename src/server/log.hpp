#pragma once

#include "holdfast/clock.hpp"
#include "json/value.hpp"

#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace holdfast::server {

/// One JSON document on each line: `{"at":…,"event":…,…}`. Nothing that a client sent is written but paths without
/// their query, users and addresses: no key, token or lock name. May be used from any thread.
class Log {
public:
    Log(const Clock& clock, std::function<void(std::string_view line)> out) : clock_(clock), out_(std::move(out)) {}

    using Fields = std::initializer_list<std::pair<std::string_view, json::Value>>;
    void write(std::string_view event, Fields fields = {});

private:
    const Clock& clock_;
    std::function<void(std::string_view line)> out_;
};

}  // namespace holdfast::server
