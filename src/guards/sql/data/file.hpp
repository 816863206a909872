#pragma once

#include "base/fd.hpp"
#include "guards/sql/data/rows.hpp"
#include "values/sha256.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::guards::data {

/// A file of a table.
struct SourceFile {
    std::string name{};   ///< In the folder of the table.
    std::string path{};   ///< For people and for messages.
    std::string below{};  ///< From the data folder.
};

/// The folder that has a folder for each table. What lies outside of it is not read, whatever symbolic links say.
class DataFolder {
public:
    [[nodiscard]] static Result<DataFolder> open(const std::string& path);

    /// `*.csv` and `*.yaml`, sorted by name; at least one. A name that is almost that, such as `a.yml`, is refused: a
    /// file that is passed over is a table that loses rows. Other files are not looked at.
    [[nodiscard]] Result<std::vector<SourceFile>> files_of(const std::string& table) const;

    /// Reads a file from its beginning, and adds its bytes to `digest`. Refused with `data_invalid` where it is no
    /// regular file, no UTF-8, has a NUL, or is not what its ending says.
    [[nodiscard]] Result<void> read(const SourceFile& file, RowSink& sink, Sha256& digest) const;

private:
    DataFolder(std::string path, base::Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    /// Only below the folder.
    [[nodiscard]] Result<base::Fd> open_below(const std::string& name, int flags) const;

    std::string path_;
    base::Fd fd_;
};

}  // namespace holdfast::guards::data
