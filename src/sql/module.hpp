#pragma once

#include "base/module.hpp"
#include "base/url.hpp"
#include "sql/session.hpp"

/// The drivers of servers are modules: shared objects that are loaded when a URL asks for them.
namespace holdfast::sql {

struct Module : base::ModuleHead {
    Result<std::unique_ptr<Session>> (*open)(base::Url url, const Clock& clock, Deadline deadline);
};

}  // namespace holdfast::sql

/// Defines the entry of the module `name`.
#define HOLDFAST_SQL_MODULE(name, open)                                                                        \
    extern "C" [[gnu::visibility("default")]] const holdfast::base::ModuleHead* holdfast_sql_module_##name() { \
        static constexpr holdfast::sql::Module module{{HOLDFAST_ABI_TAG}, open};                               \
        return &module;                                                                                        \
    }
