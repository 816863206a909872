# holdfast::holdfast, what users link: one archive with everything but the command. The folders stay targets
# of their own inside the project, so that each link follows an arrow of docs/ARCHITECTURE.md.
set(holdfast_folders values kernel base sql_session sql_sqlite sql store_common store_memory store_file store_sqlite open client guard_sql)

list(TRANSFORM holdfast_folders REPLACE "(.+)" "$<TARGET_OBJECTS:holdfast_\\1>" OUTPUT_VARIABLE holdfast_objects)
find_package(SQLite3 REQUIRED)
find_package(Threads REQUIRED)

add_library(holdfast_library STATIC ${holdfast_objects})
add_library(holdfast::holdfast ALIAS holdfast_library)
set_target_properties(holdfast_library PROPERTIES
  OUTPUT_NAME holdfast
  EXPORT_NAME holdfast
  LINKER_LANGUAGE CXX)
target_link_libraries(holdfast_library
  PUBLIC holdfast::api
  PRIVATE fmt::fmt SQLite::SQLite3 Threads::Threads ${CMAKE_DL_LIBS})
if(NOT HOLDFAST_INSTALL)
  set_target_properties(holdfast_library PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
