# For the short program (src/cli/short.cpp), which has no shared libraries: what every folder of it links, as shared
# libraries anywhere else. The program asks for archives with its property HOLDFAST_IS_STATIC.
find_package(fmt REQUIRED)
find_package(SQLite3 REQUIRED)
find_library(HOLDFAST_SQLITE_ARCHIVE libsqlite3.a)
find_library(HOLDFAST_C_ARCHIVE libc.a)
mark_as_advanced(HOLDFAST_SQLITE_ARCHIVE HOLDFAST_C_ARCHIVE)

set(linked_statically $<BOOL:$<TARGET_PROPERTY:HOLDFAST_IS_STATIC>>)
add_library(holdfast_fmt INTERFACE)
add_library(holdfast::fmt ALIAS holdfast_fmt)
# Debian has no archive of it; src/cli/fmt_source.cpp is one.
target_link_libraries(holdfast_fmt INTERFACE $<$<NOT:${linked_statically}>:fmt::fmt>)
add_library(holdfast_sqlite INTERFACE)
add_library(holdfast::sqlite ALIAS holdfast_sqlite)
target_link_libraries(holdfast_sqlite INTERFACE
  $<IF:${linked_statically},${HOLDFAST_SQLITE_ARCHIVE}$<SEMICOLON>m,SQLite::SQLite3>)

# Sanitizers need their shared libraries.
if(HOLDFAST_STATIC AND HOLDFAST_SQLITE_ARCHIVE AND HOLDFAST_C_ARCHIVE AND NOT HOLDFAST_SANITIZE)
  set(HOLDFAST_SHORT_PROGRAM ON)
else()
  set(HOLDFAST_SHORT_PROGRAM OFF)
endif()
