#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// The database as another program sees it: through SQLite's own interface, and byte by byte.
namespace holdfast::tests {

class ByHand {
public:
    explicit ByHand(const std::filesystem::path& file) {
        sqlite3* opened = nullptr;
        const int status = sqlite3_open(file.c_str(), &opened);
        handle_.reset(opened);
        if (status != SQLITE_OK) throw std::runtime_error("cannot open " + file.string());
    }

    /// SQLite's result code.
    int execute(const std::string& sql) { return sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr); }

    /// The first column of every row.
    std::vector<std::string> column(const std::string& sql) {
        std::vector<std::string> values;
        const auto collect = [](void* into, int, char** row, char**) {
            static_cast<std::vector<std::string>*>(into)->emplace_back(row[0] == nullptr ? "" : row[0]);
            return 0;
        };
        if (sqlite3_exec(handle_.get(), sql.c_str(), collect, &values, nullptr) != SQLITE_OK)
            throw std::runtime_error(sqlite3_errmsg(handle_.get()));
        return values;
    }

private:
    struct Close {
        void operator()(sqlite3* handle) const { sqlite3_close(handle); }
    };
    std::unique_ptr<sqlite3, Close> handle_;
};

inline std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

/// Changes one byte in place.
inline void write_byte(const std::filesystem::path& file, std::size_t position, char byte) {
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(position)).put(byte);
}

/// Every file below `folder` with its content.
inline std::map<std::string, std::string> contents_of(const std::filesystem::path& folder) {
    std::map<std::string, std::string> contents;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        contents[entry.path().string()] = entry.is_regular_file() ? bytes_of(entry.path()) : "";
    return contents;
}

}  // namespace holdfast::tests
