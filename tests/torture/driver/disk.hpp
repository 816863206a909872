#pragma once

#include <filesystem>

namespace torture {

/// A disk of its own for a store, which can be made full. In memory, and seen by this process and those that it starts
/// alone, so that it goes with them.
class Disk {
public:
    /// At an empty folder. Where this user may not mount it stays a folder like any other.
    explicit Disk(std::filesystem::path where);
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;
    ~Disk();

    [[nodiscard]] bool can_be_full() const { return mounted_; }
    /// Not one block is left, until `make_room`.
    void fill();
    void make_room();

private:
    std::filesystem::path where_;
    bool mounted_ = false;
};

}  // namespace torture
