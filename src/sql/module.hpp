#pragma once

#include "base/url.hpp"
#include "sql/session.hpp"

/// The drivers of servers are modules: shared objects that are loaded when a URL asks for them.
namespace holdfast::sql {

struct Module {
    std::string_view version;  ///< Of Holdfast. Only modules of the same build fit.
    Result<std::unique_ptr<Session>> (*open)(base::Url url, const Clock& clock, Deadline deadline);
};

/// Every module has one function with this name.
inline constexpr const char* module_entry = "holdfast_sql_module";
using ModuleEntry = const Module* (*)();

}  // namespace holdfast::sql

/// Defines a module's entry. `HOLDFAST_VERSION` comes from the build.
#define HOLDFAST_SQL_MODULE(open)                                                                  \
    extern "C" [[gnu::visibility("default")]] const holdfast::sql::Module* holdfast_sql_module() { \
        static constexpr holdfast::sql::Module module{HOLDFAST_VERSION, open};                     \
        return &module;                                                                            \
    }
