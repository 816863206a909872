# Modules: shared objects with a large driver, which are loaded when a URL asks for them. `holdfast_module(store postgres
# holdfast::store_postgres module.cpp)` makes holdfast-store-postgres.so of that target and that source. Build and
# installation have the same layout, so that a program finds its modules in both by the same path.
include(GNUInstallDirs)
set(holdfast_modules_folder ${CMAKE_INSTALL_LIBDIR}/holdfast)
function(holdfast_module kind name library source)
  set(module holdfast_${kind}_module_${name})
  add_library(${module} MODULE ${source})
  target_link_libraries(${module} PRIVATE ${library} holdfast::internal)
  target_compile_definitions(${module} PRIVATE HOLDFAST_VERSION="${PROJECT_VERSION}")
  set_target_properties(${module} PROPERTIES
    PREFIX ""
    OUTPUT_NAME holdfast-${kind}-${name}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${holdfast_modules_folder})
  # Its own copies of common code stay its own.
  target_link_options(${module} PRIVATE -Wl,--exclude-libs,ALL)
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_MODULES ${module})
endfunction()
