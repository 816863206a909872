// Migration scripts. No statement is lost or made up: the statements stand in the script in their order, and cutting
// one of them again gives it whole.
#include "fuzz/target.hpp"
#include "guards/sql/migrate/lint.hpp"
#include "guards/sql/migrate/placeholders.hpp"
#include "guards/sql/migrate/splitter.hpp"

#include <string>

namespace holdfast::fuzz {
namespace {

using guards::migrate::Dialect;

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
    const bool has_delimiters = script.find_first_of("dD") != std::string_view::npos && dialect == Dialect::mysql;
    for (const auto& statement : *statements) {
        const auto found = script.find(statement.text, at);
        require(found != std::string_view::npos, "a statement that is not in the script");
        at = found + statement.text.size();
        require(statement.line >= line, "lines run backwards");
        line = statement.line;
        const auto again = guards::migrate::split(statement.text, dialect);
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
