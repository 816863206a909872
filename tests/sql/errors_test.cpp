// Goal: the same failure has the same class on every database, whatever code its server has for it. Method: the codes
// that the servers document, one by one.
#include "sql/mysql/failure.hpp"
#include "sql/postgres/fault.hpp"
#include "sql/sqlite/connection.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace holdfast::sql {
namespace {

ErrorClass of_postgres(const char* sqlstate) { return postgres::Fault{.sqlstate = sqlstate}.error_class(); }
ErrorClass of_mysql(unsigned code) { return mysql::Failure{.code = code}.error_class(); }

TEST(SqlErrors, AServerThatSaysNothingIsALostConnection) {
    EXPECT_EQ(of_postgres(""), ErrorClass::connection_lost);
    EXPECT_EQ(of_postgres("57P01"), ErrorClass::connection_lost) << "ended by an operator";
    EXPECT_EQ(of_postgres("25P03"), ErrorClass::connection_lost) << "idle in a transaction for too long";
    EXPECT_EQ(of_mysql(2013), ErrorClass::connection_lost) << "lost during a query";
    EXPECT_EQ(of_mysql(1927), ErrorClass::connection_lost) << "killed";
    EXPECT_EQ(sqlite::error_class_of(SQLITE_IOERR_READ), ErrorClass::connection_lost);
}

TEST(SqlErrors, ATransactionThatLostAgainstAnotherIsAConflict) {
    EXPECT_EQ(of_postgres("40001"), ErrorClass::conflict);
    EXPECT_EQ(of_postgres("40P01"), ErrorClass::conflict);
    EXPECT_EQ(of_mysql(1213), ErrorClass::conflict);
    EXPECT_EQ(of_mysql(9007), ErrorClass::conflict) << "TiDB";
    EXPECT_EQ(sqlite::error_class_of(SQLITE_BUSY_SNAPSHOT), ErrorClass::conflict);
}

TEST(SqlErrors, ALockThatWasNotGrantedInTimeIsBusy) {
    EXPECT_EQ(of_postgres("55P03"), ErrorClass::lock_busy);
    EXPECT_EQ(of_mysql(1205), ErrorClass::lock_busy);
    EXPECT_EQ(of_mysql(3572), ErrorClass::lock_busy);
    EXPECT_EQ(sqlite::error_class_of(SQLITE_BUSY), ErrorClass::lock_busy);
}

TEST(SqlErrors, AStatementThatWasEndedIsCancelled) {
    EXPECT_EQ(of_postgres("57014"), ErrorClass::cancelled);
    EXPECT_EQ(of_mysql(1317), ErrorClass::cancelled);
    EXPECT_EQ(of_mysql(1969), ErrorClass::cancelled) << "MariaDB's time limit";
    EXPECT_EQ(of_mysql(3024), ErrorClass::cancelled) << "MySQL's time limit";
    EXPECT_EQ(sqlite::error_class_of(SQLITE_INTERRUPT), ErrorClass::cancelled);
}

TEST(SqlErrors, WhatIsThereAlreadyIsADuplicateAndOtherRulesAreConstraints) {
    EXPECT_EQ(of_postgres("23505"), ErrorClass::duplicate);
    EXPECT_EQ(of_postgres("42P07"), ErrorClass::duplicate) << "a table";
    EXPECT_EQ(of_mysql(1062), ErrorClass::duplicate);
    EXPECT_EQ(of_mysql(1050), ErrorClass::duplicate) << "a table";
    EXPECT_EQ(sqlite::error_class_of(SQLITE_CONSTRAINT_PRIMARYKEY), ErrorClass::duplicate);
    EXPECT_EQ(of_postgres("23503"), ErrorClass::constraint);
    EXPECT_EQ(of_mysql(1452), ErrorClass::constraint);
    EXPECT_EQ(sqlite::error_class_of(SQLITE_CONSTRAINT_NOTNULL), ErrorClass::constraint);
}

TEST(SqlErrors, RightsAndLoginsAreDenied) {
    EXPECT_EQ(of_postgres("42501"), ErrorClass::denied);
    EXPECT_EQ(of_postgres("28P01"), ErrorClass::denied);
    EXPECT_EQ(of_mysql(1045), ErrorClass::denied);
    EXPECT_EQ(of_mysql(1142), ErrorClass::denied);
    EXPECT_EQ(of_mysql(2059), ErrorClass::denied) << "the driver's own: it cannot log in that way";
    EXPECT_EQ(sqlite::error_class_of(SQLITE_PERM), ErrorClass::denied);
}

TEST(SqlErrors, MissingReadOnlyFullAndDamagedAreToldApart) {
    EXPECT_EQ(of_postgres("42P01"), ErrorClass::missing);
    EXPECT_EQ(of_mysql(1146), ErrorClass::missing);
    EXPECT_EQ(of_postgres("25006"), ErrorClass::read_only);
    EXPECT_EQ(of_mysql(1836), ErrorClass::read_only);
    EXPECT_EQ(sqlite::error_class_of(SQLITE_READONLY), ErrorClass::read_only);
    EXPECT_EQ(of_postgres("53100"), ErrorClass::out_of_space);
    EXPECT_EQ(of_mysql(1114), ErrorClass::out_of_space);
    EXPECT_EQ(sqlite::error_class_of(SQLITE_FULL), ErrorClass::out_of_space);
    EXPECT_EQ(of_postgres("XX001"), ErrorClass::damaged);
    EXPECT_EQ(sqlite::error_class_of(SQLITE_CORRUPT), ErrorClass::damaged);
}

TEST(SqlErrors, AnUnknownCodeIsOther) {
    EXPECT_EQ(of_postgres("42601"), ErrorClass::other) << "a syntax error";
    EXPECT_EQ(of_mysql(1064), ErrorClass::other) << "a syntax error";
    EXPECT_EQ(sqlite::error_class_of(SQLITE_ERROR), ErrorClass::other);
}

}  // namespace
}  // namespace holdfast::sql
