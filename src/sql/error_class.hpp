#pragma once

namespace holdfast::sql {

/// What a failed statement means for its sender. Each driver sorts its codes into these; texts are never looked
/// at, because they are translated and change between versions.
///
/// A class says nothing about what was changed before: after `connection_lost` during a COMMIT nobody knows.
enum class ErrorClass {
    connection_lost,  ///< No answer, or the server ended the session. A new connection may succeed.
    conflict,         ///< The transaction was rolled back because of another one. Repeating all of it may succeed.
    lock_busy,        ///< A lock was not granted in time. The transaction goes on, but repeating it is simplest.
    cancelled,        ///< Somebody cancelled the statement, or its own time limit did.
    duplicate,        ///< A row, table or column with this key or name exists already.
    constraint,       ///< The data breaks another rule of the schema.
    missing,          ///< No such table, column, schema or function.
    denied,           ///< The login or a right is refused. Repeating brings the same answer.
    read_only,        ///< A standby, a replica, or a server that was switched to read-only.
    out_of_space,     ///< Disk, memory or connections are used up. May succeed later.
    damaged,          ///< The database cannot read its own files.
    other,            ///< The statement can never work as it is, or the code is not known here.
};

}  // namespace holdfast::sql
