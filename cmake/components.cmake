# Components: stores that a program links instead of loading their modules, `holdfast::postgres`. In a shared library's
# build the name stays, and stands for the loadable module.
#
# `holdfast_component(postgres MODULES store_postgres sql_postgres LIBRARIES PkgConfig::libpq PACKAGES libpq)`: of which
# folders' modules, what they link, and the same by the names of pkg-config.
include(layout)

function(holdfast_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "MODULES;FOLDERS;LIBRARIES;PACKAGES")
  set(component holdfast_component_${name})
  set(objects "")
  set(entries "")
  foreach(module IN LISTS arg_MODULES)
    string(REGEX REPLACE "^([a-z]+)_" "holdfast_\\1_module_" entry ${module})
    list(APPEND entries ${entry})
    list(APPEND objects $<TARGET_OBJECTS:${entry}_entry> $<TARGET_OBJECTS:holdfast_${module}>)
  endforeach()
  foreach(folder IN LISTS arg_FOLDERS)
    list(APPEND objects $<TARGET_OBJECTS:holdfast_${folder}>)
  endforeach()

  if(BUILD_SHARED_LIBS)
    add_library(${component} INTERFACE)
    add_dependencies(${component} ${entries})
    target_link_libraries(${component} INTERFACE holdfast::holdfast)
  else()
    add_library(${component} STATIC ${objects})
    set_target_properties(${component} PROPERTIES OUTPUT_NAME holdfast-${name} LINKER_LANGUAGE CXX)
    target_link_libraries(${component} PUBLIC holdfast::holdfast PRIVATE ${arg_LIBRARIES})
    # Nothing refers to the entries but weakly, which takes no member out of an archive.
    list(TRANSFORM entries PREPEND -Wl,-u, OUTPUT_VARIABLE kept)
    target_link_options(${component} INTERFACE ${kept})
    if(NOT HOLDFAST_INSTALL)
      set_target_properties(${component} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  endif()
  add_library(holdfast::${name} ALIAS ${component})
  set_target_properties(${component} PROPERTIES
    EXPORT_NAME ${name}
    HOLDFAST_ENTRIES "${entries}"
    HOLDFAST_PACKAGES "${arg_PACKAGES}")
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_COMPONENTS ${name})
endfunction()
