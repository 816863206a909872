#include "guards/sql/migrate/body.hpp"

namespace holdfast::guards::migrate {
namespace {

/// Whether the parentheses behind a word hold a list: then `IF (a, b, c)` and `REPEAT('-', 3)` are functions.
bool is_called_with_list(Lexer behind) {
    if (!behind.next().is('(')) return false;
    int depth = 1;
    for (Token token = behind.next(); token.kind != Token::Kind::end && token.kind != Token::Kind::broken;
         token = behind.next()) {
        if (token.is('(')) ++depth;
        if (token.is(')') && --depth == 0) return false;
        if (token.is(',') && depth == 1) return true;
        if (token.is(';')) return false;
    }
    return false;
}

/// BEGIN and END are allowed as names in MySQL. A name stands where a value or a column can stand.
bool is_used_as_name(const Token& before) {
    if (before.kind == Token::Kind::symbol)
        return std::string_view(".,(=<>+-*/@").find(before.text.front()) != std::string_view::npos;
    return before.is_any({"SELECT", "WHERE", "AND", "OR", "BY", "AS", "SET", "ON", "HAVING", "BETWEEN", "DISTINCT"});
}

/// `IF EXISTS` and `IF NOT EXISTS` belong to what they are said of.
bool takes_if(const Token& before) {
    return before.is_any({"TABLE",    "TABLES", "VIEW",     "PROCEDURE", "FUNCTION", "TRIGGER",    "EVENT",
                          "DATABASE", "SCHEMA", "INDEX",    "COLUMN",    "KEY",      "CONSTRAINT", "USER",
                          "ROLE",     "SERVER", "SEQUENCE", "PARTITION", "ADD",      "DROP",       "MODIFY",
                          "CHANGE",   "RENAME", "CHECK",    "BODY",      "PACKAGE"});
}

/// `FOR i IN 1..9 DO`, but not FOR EACH ROW, FOR UPDATE or a cursor's.
bool is_loop(Lexer behind) {
    static_cast<void>(behind.next());
    return behind.next().is("IN");
}

}  // namespace

void Body::follow(const Token& token, const Lexer& behind) {
    if (behind.dialect() == Dialect::postgres && token.is('(')) ++parentheses_;
    if (behind.dialect() == Dialect::postgres && token.is(')') && parentheses_ > 0) --parentheses_;
    switch (kind_) {
        case Kind::unknown: find_kind(token, behind); break;
        case Kind::plain: break;
        case Kind::routine: follow_atomic(token, behind); break;
        case Kind::trigger_of_sqlite: follow_trigger(token); break;
        case Kind::compound: follow_compound(token, behind); break;
    }
    before_ = token;
}

void Body::find_kind(const Token& token, const Lexer& behind) {
    ++words_;
    if (behind.dialect() == Dialect::sqlite) return find_trigger(token);
    const bool mysql = behind.dialect() == Dialect::mysql;
    if (words_ == 1) {
        if (mysql && token.is("BEGIN") && behind.peek().is("NOT")) {
            kind_ = Kind::compound;
            depth_ = 1;
        } else if (!token.is("CREATE")) {
            kind_ = Kind::plain;
        }
        return;
    }
    if (!mysql && token.is_any({"FUNCTION", "PROCEDURE"}))
        kind_ = Kind::routine;
    else if (mysql && token.is_any({"FUNCTION", "PROCEDURE", "TRIGGER", "EVENT"}))
        kind_ = Kind::compound;
    else if (token.is_any({"TABLE", "INDEX", "VIEW", "UNIQUE", "DATABASE", "SCHEMA", "USER", "ROLE", "SEQUENCE"}) ||
             words_ > 16)  // CREATE OR REPLACE DEFINER = `name`@`host` AGGREGATE, and room to spare.
        kind_ = Kind::plain;
}

/// As sqlite3_complete() has it: CREATE, TEMP or not, TRIGGER; and before that EXPLAIN with its own words.
void Body::find_trigger(const Token& token) {
    const bool is_temporary = token.is_any({"TEMP", "TEMPORARY"});
    if (words_ == 1 && !token.is("CREATE")) {
        const bool goes_on = is_explained_ && !is_temporary && !token.is_any({"EXPLAIN", "TRIGGER", "END"});
        if (!goes_on && (is_explained_ || !token.is("EXPLAIN"))) kind_ = Kind::plain;
        is_explained_ = true;
        words_ = 0;
    } else if (token.is("TRIGGER")) {
        kind_ = Kind::trigger_of_sqlite;
        depth_ = 1;
    } else if (words_ > 1 && !is_temporary) {
        kind_ = Kind::plain;
    }
}

void Body::follow_atomic(const Token& token, const Lexer& behind) {
    // CASE and END are reserved in PostgreSQL, BEGIN and ATOMIC are not.
    if (token.is("BEGIN") && behind.peek().is("ATOMIC") && !before_.is('.')) ++depth_;
    if (depth_ == 0 || before_.is('.')) return;
    if (token.is("CASE")) ++depth_;
    if (token.is("END")) --depth_;
}

void Body::follow_trigger(const Token& token) {
    // As sqlite3_complete() has it: the body ends with an END between two semicolons, since CASE … END cannot begin a
    // statement. So BEGIN and END may also be names.
    if (token.is(';')) depth_ = ends_trigger_ ? 0 : 1;
    ends_trigger_ = token.is("END") && before_.is(';');
}

bool Body::opens_block(const Token& token, const Lexer& behind) const {
    if (before_.is('.')) return false;
    if (token.is("BEGIN")) {
        const Token next = behind.peek();
        const bool is_value =
            next.is(',') || next.is(')') || next.is('=') || next.is('.') || next.is('<') || next.is('>');
        return !is_used_as_name(before_) && !is_value;
    }
    if (token.is_any({"CASE", "LOOP", "WHILE"})) return true;
    if (token.is("IF")) return !takes_if(before_) && !is_called_with_list(behind);
    if (token.is("REPEAT")) return !is_called_with_list(behind);
    return token.is("FOR") && is_loop(behind);
}

void Body::follow_compound(const Token& token, const Lexer& behind) {
    if (skip_) {
        skip_ = false;
        return;
    }
    if (token.is("END") && depth_ > 0 && !is_used_as_name(before_)) {
        --depth_;
        skip_ = behind.peek().is_any({"IF", "CASE", "LOOP", "WHILE", "REPEAT", "FOR"});
    } else if (opens_block(token, behind)) {
        ++depth_;
    }
}

}  // namespace holdfast::guards::migrate
