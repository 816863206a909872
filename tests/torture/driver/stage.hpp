#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace torture {

/// The store of a run, and what can be done to it.
class Stage {
public:
    virtual ~Stage() = default;

    /// What clients open.
    [[nodiscard]] virtual std::string url() const = 0;
    /// The same store for who looks at it, past whatever loses messages.
    [[nodiscard]] virtual std::string inner_url() const { return url(); }
    /// The faults that it can suffer, beside those of its clients.
    [[nodiscard]] virtual std::vector<std::string> faults() const { return {}; }
    /// Begins and ends a fault. `step` is by how much a clock moves.
    virtual void begin(const std::string& fault, std::chrono::milliseconds step);
    virtual void finish(const std::string& fault);
};

/// `store` is a kind of store, which starts empty; or a URL, whose store is taken as it is. Throws
/// std::invalid_argument where there is no such kind.
[[nodiscard]] std::unique_ptr<Stage> set_up(const std::string& store);

}  // namespace torture
