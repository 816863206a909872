#include "sql/mysql/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <errmsg.h>

namespace holdfast::sql::mysql {
namespace {

// By number: the texts are translated, and the names differ between MySQL, MariaDB and TiDB.
constexpr std::array<unsigned, 6> endings{
    1053,  // server shutdown in progress
    1152,  // aborted connection
    1159,  // timeout reading from the client
    1161,  // timeout writing to the client
    1927,  // connection was killed (MariaDB)
    4031,  // disconnected because it was idle (MySQL)
};
constexpr unsigned lock_wait_timeout = 1205;
constexpr unsigned lock_not_waited_for = 3572;  // NOWAIT (MySQL, TiDB); MariaDB takes that for a timeout
constexpr std::array<unsigned, 6> rollbacks{
    1213,  // deadlock
    1020,  // record has changed since last read (innodb_snapshot_isolation)
    9007,  // write conflict (TiDB)
    8022,  // the transaction can be retried (TiDB)
    8028,  // the schema changed under the transaction (TiDB)
    8002,  // the transaction was aborted by a conflict (TiDB)
};
constexpr std::array<unsigned, 17> denials{
    1044,  // this database
    1045,  // user or password
    1129,  // a host that failed too often
    1130,  // a host that nobody may come from
    1142, 1143, 1227, 1370, 1410,
    1698,  // user or password
    1820,  // the password must be changed first
    1862,  // the password has expired
    3118,  // the account is locked (MySQL)
    3159,  // only over TLS (MySQL)
    3955,  // too many failed logins (MySQL)
    4151,  // the account is locked (MariaDB)
    2059,  // the driver's: this way of logging in is not known here
};
constexpr unsigned unknown_database = 1049;

/// What is wrong with the server, in English whatever language it speaks. Empty if the code does not say.
std::string_view condition_of(const Failure& failure) {
    switch (failure.code) {
        case 1021:
        case 1114: return "its disk or a table is full: ";
        // It tells what the operating system said.
        case 1030:
        case 1026: return failure.text.find("28") == std::string::npos ? "" : "its disk is full: ";
        case 1037:
        case 1038:
        case 1041: return "it is out of memory: ";
        case 1040:
        case 1203: return "it has too many connections: ";
        case 1290:
        case 1792:
        case 1836: return "it is read-only: ";
        case 1053: return "it is ending: ";
        default: return "";
    }
}

template <std::size_t size>
bool among(const std::array<unsigned, size>& codes, unsigned code) {
    return std::ranges::find(codes, code) != codes.end();
}

}  // namespace

ErrorClass Failure::error_class() const {
    if (lost()) return denied() ? ErrorClass::denied : ErrorClass::connection_lost;
    if (rolled_back()) return ErrorClass::conflict;
    if (row_busy()) return ErrorClass::lock_busy;
    if (denied()) return ErrorClass::denied;
    switch (code) {
        case 1317:                                // interrupted by KILL QUERY
        case 1969:                                // max_statement_time (MariaDB)
        case 3024: return ErrorClass::cancelled;  // max_execution_time (MySQL)
        case 1007:                                // database
        case 1050:                                // table
        case 1060:                                // column
        case 1061:                                // index
        case 1062:                                // row
        case 1304:                                // procedure or function
        case 1586: return ErrorClass::duplicate;  // row
        case 1048:                                // NULL in a column that takes none
        case 1216:                                // foreign keys
        case 1217:
        case 1364:  // no value for a column without a default
        case 1406:  // too long
        case 1451:
        case 1452:
        case 3819:                                 // CHECK (MySQL)
        case 4025: return ErrorClass::constraint;  // CHECK (MariaDB)
        case 1049:                                 // database
        case 1054:                                 // column
        case 1091:                                 // column or index to drop
        case 1146:                                 // table
        case 1305: return ErrorClass::missing;     // procedure or function
        case 1290:
        case 1792:
        case 1836: return ErrorClass::read_only;
        case 1021:
        case 1037:
        case 1038:
        case 1040:
        case 1041:
        case 1114:
        case 1203: return ErrorClass::out_of_space;
        case 1034:
        case 1194:
        case 1712: return ErrorClass::damaged;
        default: return ErrorClass::other;
    }
}

bool Failure::answered() const { return code < CR_MIN_ERROR || code >= 3000; }

bool Failure::lost() const { return !answered() || among(endings, code); }

bool Failure::row_busy() const { return code == lock_wait_timeout || code == lock_not_waited_for; }

bool Failure::conflict() const { return row_busy() || rolled_back(); }

bool Failure::rolled_back() const { return among(rollbacks, code); }

bool Failure::no_such_table() const { return code == 1146; }

bool Failure::no_such_column() const { return code == 1054; }

bool Failure::duplicate_column() const { return code == 1060; }

bool Failure::duplicate() const { return code == 1062; }

bool Failure::denied() const { return among(denials, code); }

bool Failure::too_many_statements() const { return code == 1461; }

bool Failure::statement_forgotten() const { return code == 1243; }

Error error_of(const Failure& failure, std::string_view doing) {
    const Errc code = failure.denied()                   ? Errc::denied
                      : failure.code == unknown_database ? Errc::config
                                                         : Errc::store_unavailable;
    return {code, fmt::format("cannot {}: {}the database says \"{}\" (code {}); nothing was changed", doing,
                              condition_of(failure), failure.text, failure.code)};
}

}  // namespace holdfast::sql::mysql
