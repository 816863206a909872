# Modules: shared objects with a large driver, which are loaded when a URL asks for them. `holdfast_module(store postgres
# holdfast::store_postgres module.cpp)` makes holdfast-store-postgres.so of that target and that source.
include(layout)

# Which build this is, for modules and for what loads them: they must be of the same one.
find_package(Git QUIET)
set(holdfast_commit "")
# Not of somebody else's repository around the sources.
if(Git_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse --verify --quiet HEAD
    OUTPUT_VARIABLE holdfast_commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(holdfast_build_definitions HOLDFAST_VERSION="${PROJECT_VERSION}" HOLDFAST_COMMIT="${holdfast_commit}")

# All of them, for whoever wants them built: add_dependencies(program holdfast_modules).
if(NOT TARGET holdfast_modules)
  add_custom_target(holdfast_modules)
endif()

function(holdfast_module kind name library source)
  set(module holdfast_${kind}_module_${name})
  # Of the module, and of the component in which a program links the same.
  add_library(${module}_entry OBJECT ${source})
  target_link_libraries(${module}_entry PRIVATE ${library} holdfast::internal)
  target_compile_definitions(${module}_entry PRIVATE ${holdfast_build_definitions})

  add_library(${module} MODULE $<TARGET_OBJECTS:${module}_entry>)
  target_link_libraries(${module} PRIVATE ${library} holdfast::internal)
  set_target_properties(${module} PROPERTIES
    PREFIX ""
    OUTPUT_NAME holdfast-${kind}-${name}
    LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${holdfast_modules_built})
  # Its own copies of common code stay its own.
  target_link_options(${module} PRIVATE -Wl,--exclude-libs,ALL)
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_MODULES ${module})
  add_dependencies(holdfast_modules ${module})
endfunction()
