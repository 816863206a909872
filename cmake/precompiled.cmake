# Compiles the headers that nearly every file includes once, instead of once for each file. Tests always use
# that, because most of their time goes into GoogleTest's headers. With HOLDFAST_PCH so does src/, for the
# sanitizer presets, which compile several files as one besides, as the release preset does. The preset dev does
# neither, so that a file that forgets an include is noticed there and by `make lint`.
function(holdfast_precompile name)
  set(source ${PROJECT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE holdfast::api holdfast::internal fmt::fmt)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  # A precompiled header remembers the checksum of every header with `#pragma once`. The compiler cache takes two
  # headers that differ in their comments for the same, and would hand out one whose checksums fit no file here.
  set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "")
endfunction()

# `target` uses what `name` has compiled. GCC insists on the same definitions, so fmt comes along.
function(holdfast_use_precompiled target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
  target_link_libraries(${target} PRIVATE fmt::fmt)
endfunction()

# So do all programs and libraries in `folder` and below.
function(holdfast_use_precompiled_below folder name)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY OR type STREQUAL EXECUTABLE)
      holdfast_use_precompiled(${target} ${name})
    endif()
  endforeach()
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    holdfast_use_precompiled_below(${subfolder} ${name})
  endforeach()
endfunction()

set(holdfast_common_headers
  ${PROJECT_SOURCE_DIR}/include/holdfast/open.hpp <fmt/format.h> <algorithm> <array> <chrono> <filesystem> <map> <mutex> <optional> <string> <variant> <vector>)

if(HOLDFAST_PCH)
  holdfast_precompile(holdfast_src_headers ${holdfast_common_headers})
  holdfast_use_precompiled_below(${PROJECT_SOURCE_DIR}/src holdfast_src_headers)
endif()
