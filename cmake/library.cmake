# holdfast::holdfast, what users link: everything but the command and what is only for it. The folders stay targets
# of their own inside the project, so that each link follows an arrow of docs/ARCHITECTURE.md.
include(layout)
set(holdfast_folders values kernel base sql_session sql_sqlite sql store_common store_memory store_file store_sqlite open client guard_sql guard_edit)

list(TRANSFORM holdfast_folders REPLACE "(.+)" "$<TARGET_OBJECTS:holdfast_\\1>" OUTPUT_VARIABLE holdfast_objects)
find_package(SQLite3 REQUIRED)
find_package(Threads REQUIRED)

# Static unless BUILD_SHARED_LIBS says otherwise.
add_library(holdfast_library ${holdfast_objects})
add_library(holdfast::holdfast ALIAS holdfast_library)
set_target_properties(holdfast_library PROPERTIES
  OUTPUT_NAME holdfast
  EXPORT_NAME holdfast
  LINKER_LANGUAGE CXX)
target_link_libraries(holdfast_library
  PUBLIC holdfast::api
  PRIVATE fmt::fmt SQLite::SQLite3 Threads::Threads ${CMAKE_DL_LIBS})
if(BUILD_SHARED_LIBS)
  # Before 1.0 a minor version may change the interface.
  set_target_properties(holdfast_library PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    BUILD_WITH_INSTALL_RPATH ON
    # Where it finds its modules: see src/base/module.cpp.
    INSTALL_RPATH $ORIGIN/holdfast
    LIBRARY_OUTPUT_DIRECTORY ${holdfast_modules_built}/..
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  # Nothing of the standard library or of fmt that was compiled here.
  target_link_options(holdfast_library PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
endif()
if(NOT HOLDFAST_INSTALL)
  set_target_properties(holdfast_library PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
