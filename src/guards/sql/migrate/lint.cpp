#include "guards/sql/migrate/lint.hpp"

#include "guards/sql/migrate/tokens.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace holdfast::guards::migrate {
namespace {

constexpr std::string_view drop = "drop";
constexpr std::string_view rewrite = "rewrite";
constexpr std::string_view index_blocks_writes = "index-blocks-writes";
constexpr std::string_view not_null = "not-null-without-default";
constexpr std::string_view type_change = "type-change";
constexpr std::string_view rename = "rename";
constexpr std::string_view constraint = "constraint-scans-table";
constexpr std::string_view no_timeout = "no-lock-timeout";
constexpr std::string_view mixed = "ddl-and-data";
constexpr std::string_view transaction = "transaction-command";
constexpr std::string_view unreadable = "unreadable";

constexpr std::array rules{
    LintRule{drop, "A table, column, schema or database goes, or all rows of a table."},
    LintRule{rewrite, "The whole table is written anew while nobody can use it."},
    LintRule{index_blocks_writes, "PostgreSQL: an index without CONCURRENTLY, or with it inside a transaction."},
    LintRule{not_null, "A new column is NOT NULL and has no default: rows that exist have no value for it."},
    LintRule{type_change, "A column gets another type: most changes rewrite the table, some lose data."},
    LintRule{rename, "A table or column gets another name: programs that run still use the old one."},
    LintRule{constraint, "A constraint is checked against all rows under a lock."},
    LintRule{no_timeout, "A statement may wait for its lock without limit, and everybody else behind it."},
    LintRule{mixed, "Changes of the schema and of rows in one file."},
    LintRule{transaction, "A transaction begins or ends in the file, which has one of its own."},
    LintRule{unreadable, "The file cannot be cut into statements."},
};

class Linter {
public:
    Linter(const MigrationFile& file, Dialect dialect) : file_(file), dialect_(dialect) {}

    std::vector<Finding> run() {
        const auto statements = split(file_.text, dialect_);
        if (!statements) {
            add(statements.error().line, unreadable, statements.error().message);
            return std::move(findings_);
        }
        for (const Statement& statement : *statements) {
            line_ = statement.line;
            look_at(Tokens(statement.text, dialect_), statement.text);
        }
        return std::move(findings_);
    }

private:
    void add(std::size_t line, std::string_view rule, std::string message) {
        findings_.push_back({file_.path, line, rule, std::move(message)});
    }
    void add(std::string_view rule, std::string message) { add(line_, rule, std::move(message)); }
    [[nodiscard]] bool is_new(const std::string& table) const { return created_.contains(table); }

    void look_at(const Tokens& tokens, const std::string& text) {
        if (is_transaction_command(text, dialect_))
            return add(transaction, "the file runs in a transaction of its own, together with its row of the ledger");
        note_created(tokens);
        look_at_drop(tokens);
        look_at_index(tokens);
        look_at_rewrite(tokens);
        if (tokens.begins_with({"RENAME", "TABLE"})) add(rename, "programs that run still use the old name");
        if (const auto behind = tokens.match(0, {"ALTER", "TABLE", "IF?", "EXISTS?", "ONLY?"}))
            look_at_alter(tokens, *behind);
        look_at_timeout(tokens);
        look_at_mix(tokens);
    }

    void note_created(const Tokens& tokens) {
        auto behind = tokens.match(0, {"CREATE", "TEMP|TEMPORARY|UNLOGGED?", "TABLE", "IF?", "NOT?", "EXISTS?"});
        if (behind) created_.insert(tokens.name_at(*behind));
    }

    void look_at_drop(const Tokens& tokens) {
        auto behind = tokens.match(0, {"DROP", "TABLE|SCHEMA|DATABASE", "IF?", "EXISTS?"});
        if (!behind) behind = tokens.match(0, {"TRUNCATE", "TABLE?", "ONLY?"});
        if (!behind) return;
        if (!is_new(tokens.name_at(*behind))) add(drop, "what is in it is gone, and no way back brings it again");
    }

    void look_at_index(const Tokens& tokens) {
        if (dialect_ != Dialect::postgres) return;
        const auto behind = tokens.match(0, {"CREATE", "UNIQUE?", "INDEX"});
        if (!behind) return;
        const bool concurrently = tokens.match(*behind, {"CONCURRENTLY"}).has_value();
        if (concurrently && file_.in_transaction)
            return add(index_blocks_writes,
                       "CONCURRENTLY cannot run in a transaction; begin the file with "
                       "\"-- holdfast: no-transaction\"");
        auto table = tokens.find({"ON", "ONLY?"}, *behind);
        if (!concurrently && table && !is_new(tokens.name_at(*table)))
            add(index_blocks_writes,
                "nobody can write to the table until the index is built; use CREATE INDEX "
                "CONCURRENTLY in a file of its own");
    }

    void look_at_rewrite(const Tokens& tokens) {
        const bool whole_table = tokens.begins_with({"VACUUM"}) && tokens.has({"FULL"});
        if (dialect_ == Dialect::postgres && (whole_table || tokens.begins_with({"CLUSTER"})))
            add(rewrite, "the table is written anew, and nobody can use it meanwhile");
        if (dialect_ == Dialect::mysql && tokens.begins_with({"OPTIMIZE", "TABLE"}))
            add(rewrite, "the table is written anew");
    }

    /// `at` is where the table's name stands.
    void look_at_alter(const Tokens& tokens, std::size_t at) {
        const std::string table = tokens.name_at(at);
        if (is_new(table)) return;
        while (at < tokens.size()) {
            const std::size_t end = tokens.item_end(at);
            look_at_action(tokens.part(at, end));
            at = end + 1;
        }
    }

    /// One of the comma-separated parts of ALTER TABLE.
    void look_at_action(const Tokens& action) {
        if (action.begins_with({"DROP"}) &&
            !action.begins_with({"DROP", "CONSTRAINT|INDEX|KEY|PRIMARY|FOREIGN|CHECK|PARTITION"}))
            add(drop, "the column and what is in it are gone, and programs that run may still use it");
        if (action.begins_with({"RENAME"}) && !action.begins_with({"RENAME", "INDEX|KEY|CONSTRAINT"}))
            add(rename, "programs that run still use the old name");
        if (action.begins_with({"MODIFY|CHANGE"}) || (action.begins_with({"ALTER"}) && has_type(action)))
            add(type_change, "most changes of a type write the whole table anew, and some lose data");
        const bool is_copied = action.begins_with({"ALGORITHM"}) && action.has({"COPY"});
        if (is_copied || action.begins_with({"ENGINE|CONVERT"}) ||
            action.begins_with({"SET", "LOGGED|UNLOGGED|TABLESPACE|ACCESS"}))
            add(rewrite, "the table is written anew");
        look_at_constraint(action);
        look_at_new_column(action);
    }

    [[nodiscard]] bool has_type(const Tokens& action) const {
        auto behind = action.match(0, {"ALTER", "COLUMN?"});
        if (!behind) return false;
        static_cast<void>(action.name_at(*behind));
        return action.match(*behind, {"SET?", "DATA?", "TYPE"}).has_value();
    }

    void look_at_constraint(const Tokens& action) {
        if (dialect_ == Dialect::postgres && action.begins_with({"ALTER"}) && action.has({"SET", "NOT", "NULL"}))
            return add(constraint,
                       "all rows are read under a lock; add CHECK (… IS NOT NULL) NOT VALID, validate it in a "
                       "file of its own, then SET NOT NULL");
        if (!action.begins_with({"ADD", "CONSTRAINT|FOREIGN|CHECK|PRIMARY|UNIQUE|EXCLUDE"})) return;
        const bool later = action.has({"NOT", "VALID"}) || action.has({"USING", "INDEX"});
        if (!later)
            add(constraint,
                dialect_ == Dialect::postgres
                    ? "all rows are read under a lock; add it NOT VALID, or USING INDEX, and validate it in "
                      "a file of its own"
                    : "all rows are read, and the table may be copied");
    }

    void look_at_new_column(const Tokens& action) {
        if (!action.begins_with({"ADD"}) ||
            action.begins_with(
                {"ADD", "CONSTRAINT|FOREIGN|CHECK|PRIMARY|UNIQUE|EXCLUDE|INDEX|KEY|FULLTEXT|SPATIAL|PARTITION"}))
            return;
        const bool is_computed = action.has({"GENERATED"});
        if (action.has({"NOT", "NULL"}) && !action.has({"DEFAULT"}) && !is_computed)
            add(not_null,
                "rows that exist have no value for it; give it a default, or fill it before it becomes NOT NULL");
        const bool volatile_default = action.has({"GEN_RANDOM_UUID|UUID_GENERATE_V4|RANDOM|CLOCK_TIMESTAMP|NEXTVAL"});
        const bool counted =
            action.has({"SERIAL|BIGSERIAL|SMALLSERIAL"}) || (is_computed && action.has({"STORED|IDENTITY"}));
        if (dialect_ == Dialect::postgres && (volatile_default || counted))
            add(rewrite, "each row gets a value of its own, so the table is written anew");
    }

    void look_at_timeout(const Tokens& tokens) {
        if (dialect_ == Dialect::postgres && tokens.begins_with({"SET", "LOCAL|SESSION?", "LOCK_TIMEOUT"})) {
            const Token& last = tokens[tokens.size() - 1];
            has_timeout_ = last.text != "0" && last.text != "'0'" && !last.is("DEFAULT");
            if (!has_timeout_) add(no_timeout, "without a lock_timeout a waiting ALTER stops everybody behind it");
        }
        // All others run in a transaction of ours, which has a limit.
        const bool whole_table =
            tokens.begins_with({"CLUSTER|REINDEX"}) || (tokens.begins_with({"VACUUM"}) && tokens.has({"FULL"}));
        if (dialect_ == Dialect::postgres && !file_.in_transaction && !has_timeout_ && whole_table &&
            !tokens.has({"CONCURRENTLY"}))
            add(no_timeout, "outside a transaction no lock_timeout is set; begin with SET lock_timeout = '3s'");
    }

    void look_at_mix(const Tokens& tokens) {
        const bool is_ddl = tokens.begins_with({"CREATE|ALTER|DROP|RENAME|TRUNCATE"});
        auto table = tokens.match(
            0, {"INSERT|REPLACE", "LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE|OR?", "IGNORE|REPLACE?", "INTO?"});
        if (!table) table = tokens.match(0, {"UPDATE", "ONLY?"});
        if (!table) table = tokens.match(0, {"DELETE", "FROM", "ONLY?"});
        const bool is_data = table && (dialect_ == Dialect::mysql || !is_new(tokens.name_at(*table)));
        if (((is_ddl && has_data_) || (is_data && has_ddl_)) && !said_mixed_) {
            said_mixed_ = true;
            add(mixed,
                dialect_ == Dialect::mysql
                    ? "each change of the schema commits what was done before it; put the rows into a file of their own"
                    : "the locks of the schema change are held while rows are changed; put them into two files");
        }
        has_ddl_ = has_ddl_ || is_ddl;
        has_data_ = has_data_ || is_data;
    }

    const MigrationFile& file_;
    Dialect dialect_;
    std::size_t line_ = 1;
    std::set<std::string> created_{};  ///< Tables that the file makes: nobody uses them yet.
    bool has_timeout_ = false;
    bool has_ddl_ = false;
    bool has_data_ = false;
    bool said_mixed_ = false;
    std::vector<Finding> findings_{};
};

/// `-- holdfast: accept RULE` lines: the rule, and the lines that it speaks of.
struct Accepted {
    std::string rule;
    std::size_t line;
};

std::vector<Accepted> accepted_in(std::string_view text) {
    constexpr std::string_view mark = "-- holdfast: accept ";
    std::vector<Accepted> found;
    std::size_t line = 1;
    for (std::size_t at = 0; at < text.size(); ++line) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view whole = text.substr(at, end - at);
        if (const auto mark_at = whole.find(mark); mark_at != std::string_view::npos) {
            const std::string_view rest = whole.substr(mark_at + mark.size());
            found.push_back({std::string(rest.substr(0, rest.find_first_of(" \t\r,"))), line});
        }
        at = end + 1;
    }
    return found;
}

bool accepts(const Accepted& accepted, const Finding& finding, std::span<const Statement> statements, bool whole_file) {
    if (accepted.rule != finding.rule) return false;
    if (whole_file) return true;
    // The statement that this line stands in, or the next one.
    for (const Statement& statement : statements) {
        const auto lines = static_cast<std::size_t>(std::ranges::count(statement.text, '\n'));
        if (accepted.line <= statement.line + lines) return statement.line == finding.line;
    }
    return false;
}

}  // namespace

std::span<const LintRule> lint_rules() { return rules; }

std::vector<Finding> lint(const MigrationFile& file, Dialect dialect) {
    std::vector<Finding> findings = Linter(file, dialect).run();
    const auto accepted = accepted_in(file.text);
    const auto statements = split(file.text, dialect);
    if (accepted.empty() || !statements) return findings;
    const auto in_header = directives_of(file.text);
    std::erase_if(findings, [&](const Finding& finding) {
        return std::ranges::any_of(accepted, [&](const Accepted& each) {
            const bool whole_file = std::ranges::any_of(in_header, [&](std::string_view directive) {
                return directive.starts_with("accept " + each.rule) && each.line < statements->front().line;
            });
            return accepts(each, finding, *statements, whole_file);
        });
    });
    return findings;
}

bool is_transaction_command(std::string_view statement, Dialect dialect) {
    const Tokens tokens(statement, dialect);
    if (tokens.begins_with({"COMMIT|ROLLBACK|SAVEPOINT|RELEASE|ABORT|XA"})) return true;
    if (tokens.begins_with({"START", "TRANSACTION"}) || tokens.begins_with({"PREPARE", "TRANSACTION"})) return true;
    if (tokens.begins_with({"BEGIN"})) return dialect != Dialect::mysql || !tokens.begins_with({"BEGIN", "NOT"});
    if (dialect == Dialect::mysql) return tokens.begins_with({"SET"}) && tokens.has({"AUTOCOMMIT"});
    return tokens.begins_with({"END"});
}

bool changes_our_tables(std::string_view statement, Dialect dialect) {
    constexpr std::array ours{"holdfast_migrations", "holdfast_fence", "holdfast_identity", "holdfast_objects",
                              "holdfast_locks",      "holdfast_queue", "holdfast_audit",    "holdfast_meta"};
    const Tokens tokens(statement, dialect);
    const bool is_hint = tokens.size() > 0 && tokens[0].kind == Token::Kind::hint;
    const bool changes = tokens.begins_with({"DROP|ALTER|TRUNCATE|RENAME|INSERT|UPDATE|DELETE|REPLACE|MERGE|LOCK"}) ||
                         tokens.begins_with({"CREATE", "OR", "REPLACE", "TABLE"});
    if (!is_hint && !changes) return false;
    // What rows are made of, or are chosen by, is only read.
    const bool changes_rows = tokens.begins_with({"INSERT|UPDATE|DELETE|REPLACE|MERGE"});
    for (std::size_t at = 0; at < tokens.size(); ++at) {
        const Token::Kind kind = tokens[at].kind;
        if (changes_rows && tokens[at].is_any({"SELECT", "WITH", "VALUES", "SET", "WHERE", "USING"})) return false;
        if (kind != Token::Kind::word && kind != Token::Kind::name && kind != Token::Kind::hint) continue;
        std::string name;
        for (const char letter : tokens[at].text)
            if (letter != '"' && letter != '`' && letter != '[' && letter != ']')
                name += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
        const bool found = std::ranges::any_of(ours, [&](std::string_view each) {
            return kind == Token::Kind::hint ? name.find(each) != std::string::npos : name == each;
        });
        if (found) return true;
    }
    return false;
}

bool commits_by_itself(std::string_view statement, Dialect dialect) {
    if (dialect != Dialect::mysql) return false;
    const Tokens tokens(statement, dialect);
    if (tokens.size() > 0 && tokens[0].kind == Token::Kind::hint) return true;
    if (tokens.begins_with({"CREATE|DROP", "TEMPORARY", "TABLE"})) return false;
    if (tokens.begins_with({"SET", "PASSWORD|DEFAULT"})) return true;
    // What is not known to be undone by a rollback counts as committed.
    return !tokens.begins_with({"INSERT|UPDATE|DELETE|REPLACE|SELECT|WITH|SET|DO|VALUES|TABLE|SHOW|EXPLAIN|USE"});
}

bool outlives_transaction(std::string_view statement, Dialect dialect) {
    const Tokens tokens(statement, dialect);
    if (tokens.begins_with({"SET", "LOCAL|TRANSACTION|CONSTRAINTS"})) return false;
    if (tokens.begins_with({"SET|RESET|DISCARD|LISTEN|LOAD|PREPARE|USE"})) return true;
    if (dialect == Dialect::mysql && tokens.begins_with({"LOCK"})) return true;
    if (tokens.begins_with({"CREATE", "LOCAL|GLOBAL?", "TEMP|TEMPORARY"})) return !tokens.has({"ON", "COMMIT", "DROP"});
    if (tokens.begins_with({"DECLARE"})) return tokens.has({"WITH", "HOLD"});
    if (!tokens.begins_with({"SELECT|WITH"})) return false;
    return tokens.has({"INTO", "LOCAL|GLOBAL?", "TEMP|TEMPORARY"}) ||
           (tokens.has({"SET_CONFIG"}) && !tokens.has({"TRUE"})) ||
           tokens.has({"PG_ADVISORY_LOCK|PG_ADVISORY_LOCK_SHARED|PG_TRY_ADVISORY_LOCK|PG_TRY_ADVISORY_LOCK_SHARED"});
}

}  // namespace holdfast::guards::migrate
