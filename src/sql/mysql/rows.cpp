#include "sql/mysql/rows.hpp"

#include <mysql.h>

namespace holdfast::sql::mysql {

BoundRows::Column& BoundRows::next() {
    if (column_ == columns_.size()) columns_.emplace_back();
    return columns_[column_++];
}

void BoundRows::value(std::string_view bytes) {
    Column& column = next();
    column.begins.push_back(bytes_.size());
    column.lengths.push_back(bytes.size());
    column.indicators.push_back(STMT_INDICATOR_NONE);
    bytes_ += bytes;
}

void BoundRows::value(base::ByteView bytes) { value({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); }

void BoundRows::number(std::int64_t number) {
    Column& column = next();
    column.is_number = true;
    column.numbers.push_back(number);
    column.indicators.push_back(STMT_INDICATOR_NONE);
}

void BoundRows::no_number() {
    number(std::int64_t{0});
    columns_[column_ - 1].indicators.back() = STMT_INDICATOR_NULL;
}

void BoundRows::no_value() {
    value(std::string_view());
    columns_[column_ - 1].indicators.back() = STMT_INDICATOR_NULL;
}

std::vector<MYSQL_BIND> BoundRows::binds() {
    std::vector<MYSQL_BIND> binds;
    binds.reserve(columns_.size());
    for (Column& column : columns_) {
        MYSQL_BIND& bind = binds.emplace_back();
        bind.u.indicator = column.indicators.data();
        if (column.is_number) {
            bind.buffer_type = MYSQL_TYPE_LONGLONG;
            bind.buffer = column.numbers.data();
            continue;
        }
        column.pointers.clear();
        for (const std::size_t begin : column.begins) column.pointers.push_back(bytes_.data() + begin);
        bind.buffer_type = MYSQL_TYPE_BLOB;
        bind.buffer = static_cast<void*>(column.pointers.data());
        bind.length = column.lengths.data();
    }
    return binds;
}

}  // namespace holdfast::sql::mysql
