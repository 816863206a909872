# Where things are installed. The build folder has the same layout, so that a program finds its modules, and the short
# program the full one, by one relative path in both.
include(GNUInstallDirs)

# The path from the programs' folder to `folder`. Where that leads out of the prefix, because one of them was given as an
# absolute path elsewhere, it is `otherwise`, and holds in the build folder only.
function(holdfast_path_from_programs result folder otherwise)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE path)
  if(path MATCHES "^\\.\\./\\.\\./")
    set(path ${otherwise})
  endif()
  set(${result} ${path} PARENT_SCOPE)
endfunction()

# `folder` of the build for what is installed at `path` from the programs.
function(holdfast_built_folder result path)
  cmake_path(SET folder NORMALIZE ${PROJECT_BINARY_DIR}/bin/${path})
  set(${result} ${folder} PARENT_SCOPE)
endfunction()

set(holdfast_modules_installed ${CMAKE_INSTALL_FULL_LIBDIR}/holdfast)
holdfast_path_from_programs(holdfast_modules_from_program ${holdfast_modules_installed} ../lib/holdfast)
holdfast_built_folder(holdfast_modules_built ${holdfast_modules_from_program})
if(NOT HOLDFAST_INSTALL)
  # With the sources beside a user's own, modules stay where they are built.
  set(holdfast_modules_installed ${holdfast_modules_built})
endif()
