#include "sql/postgres/fault.hpp"

namespace holdfast::sql::postgres {

ErrorClass Fault::error_class() const {
    const std::string_view code = sqlstate;
    const std::string_view kind = code.substr(0, 2);
    if (silent() || kind == "08" || code == "57P01" || code == "57P02" || code == "57P03" || code == "57P05")
        return ErrorClass::connection_lost;
    // 25P03: the session was idle in a transaction for too long, and the server ended it.
    if (code == "25P03") return ErrorClass::connection_lost;
    if (kind == "40") return ErrorClass::conflict;
    if (code == "55P03") return ErrorClass::lock_busy;
    if (code == "57014") return ErrorClass::cancelled;
    if (code == "23505" || code == "42P04" || code == "42P06" || code == "42P07" || code == "42701" || code == "42710")
        return ErrorClass::duplicate;
    if (kind == "23") return ErrorClass::constraint;
    if (code == "42P01" || code == "42703" || code == "42883" || kind == "3F" || kind == "3D")
        return ErrorClass::missing;
    if (code == "42501" || kind == "28") return ErrorClass::denied;
    if (code == "25006") return ErrorClass::read_only;
    if (kind == "53") return ErrorClass::out_of_space;
    if (kind == "XX" || kind == "58") return ErrorClass::damaged;
    return ErrorClass::other;
}

std::string_view condition_of(const Fault& fault) {
    const std::string_view code = fault.sqlstate;
    if (code == "53100") return "the server's disk is full: ";
    if (code == "53200") return "the server is out of memory: ";
    if (code == "53300") return "the server has too many connections: ";
    if (code == "25006") return "the server is read-only: ";
    if (code == "57P03") return "the server is starting or ending: ";
    if (code == "58030") return "the server cannot use its disk: ";
    return "";
}

}  // namespace holdfast::sql::postgres
