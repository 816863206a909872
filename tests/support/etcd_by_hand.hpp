#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// etcd as an operator has it: keys read, written and removed behind the store's back.
namespace holdfast::tests {

class EtcdByHand {
public:
    explicit EtcdByHand(std::uint16_t port) : port_(port) {}

    /// From now on as this user.
    void log_in(const std::string& user, const std::string& password);

    /// From now on keys below `prefix` are for the user of the test servers alone, with its password; `root` has the
    /// password `root`.
    void require_password(const std::string& prefix) const;

    /// Keys that begin with `prefix`.
    [[nodiscard]] std::vector<std::string> keys(const std::string& prefix) const;
    [[nodiscard]] std::optional<std::string> get(const std::string& key) const;
    void put(const std::string& key, const std::string& value) const;
    void remove_all(const std::string& prefix) const;
    /// Forgets all revisions before the current one.
    void compact() const;
    /// `{}` or more in, what it answers out. Throws unless the answer is 200.
    std::string call(const std::string& path, const std::string& body) const;
    /// Whether this node leads the cluster.
    [[nodiscard]] bool leads() const;

private:
    std::uint16_t port_;
    std::string token_{};
};

}  // namespace holdfast::tests
