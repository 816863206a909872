// Migration scripts. No statement is lost or made up: the statements stand in the script in their order, and cutting
// one of them again gives it whole. SQLite, which tells a shell when a statement is complete, agrees where each ends.
#include "fuzz/target.hpp"
#include "guards/sql/migrate/lint.hpp"
#include "guards/sql/migrate/placeholders.hpp"
#include "guards/sql/migrate/splitter.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <string>

namespace holdfast::fuzz {
namespace {

using guards::migrate::Dialect;

bool is_complete_to_sqlite(std::string_view text) { return sqlite3_complete(std::string(text).c_str()) != 0; }

void expect_what_sqlite_says(std::string_view statement) {
    if (statement.find('\0') != std::string_view::npos) return;
    require(is_complete_to_sqlite(std::string(statement) + ";"), "SQLite would read on");
    for (std::size_t at = statement.find(';'); at != std::string_view::npos; at = statement.find(';', at + 1))
        require(!is_complete_to_sqlite(statement.substr(0, at + 1)), "SQLite would have ended it before");
}

/// Behind `DELIMITER //` a statement has semicolons in it.
bool may_change_delimiters(std::string_view script) {
    constexpr std::string_view word = "delimiter";
    return !std::ranges::search(script, word, [](char ours, char theirs) { return (ours | 0x20) == theirs; }).empty();
}

void run(Bytes bytes) {
    constexpr Dialect dialects[] = {Dialect::sqlite, Dialect::postgres, Dialect::mysql};
    const Dialect dialect = dialects[take_choice(bytes) % 3];
    const std::string_view script = text_of(bytes);
    const auto filled = guards::migrate::fill_in(script, [](std::string_view) { return "x"; }, "f");
    require(filled.has_value(), "a script whose placeholders are all set is refused");
    const auto statements = guards::migrate::split(script, dialect);
    if (!statements) return require(statements.error().line > 0, "a refusal without a line");
    std::size_t at = 0;
    std::size_t line = 1;
    const bool has_delimiters = dialect == Dialect::mysql && may_change_delimiters(script);
    for (const auto& statement : *statements) {
        const auto found = script.find(statement.text, at);
        require(found != std::string_view::npos, "a statement that is not in the script");
        at = found + statement.text.size();
        require(statement.line >= line, "lines run backwards");
        line = statement.line;
        const auto again = guards::migrate::split(statement.text, dialect);
        if (dialect == Dialect::sqlite) expect_what_sqlite_says(statement.text);
        if (has_delimiters) continue;
        require(again && again->size() == 1 && again->front().text == statement.text, "a statement is cut again");
        static_cast<void>(guards::migrate::is_transaction_command(statement.text, dialect));
        static_cast<void>(guards::migrate::changes_our_tables(statement.text, dialect));
    }
    guards::migrate::MigrationFile file;
    file.text = script;
    static_cast<void>(guards::migrate::lint(file, dialect));
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
