# What `cmake --install` puts where. `holdfast_installed` builds all of it.
include(layout)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)

add_custom_target(holdfast_installed ALL DEPENDS holdfast_library)

set_target_properties(holdfast_api PROPERTIES EXPORT_NAME api)
install(TARGETS holdfast_library holdfast_api EXPORT holdfast
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT holdfast
  FILE holdfastTargets.cmake NAMESPACE holdfast:: DESTINATION ${package_folder})

get_property(holdfast_components GLOBAL PROPERTY HOLDFAST_COMPONENTS)
foreach(component IN LISTS holdfast_components)
  install(TARGETS holdfast_component_${component} EXPORT holdfast-${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT holdfast-${component}
    FILE holdfast-${component}Targets.cmake NAMESPACE holdfast:: DESTINATION ${package_folder})
  add_dependencies(holdfast_installed holdfast_component_${component})
endforeach()

get_property(holdfast_modules GLOBAL PROPERTY HOLDFAST_MODULES)
if(holdfast_modules)
  install(TARGETS ${holdfast_modules} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/holdfast)
  add_dependencies(holdfast_installed ${holdfast_modules})
endif()

set(holdfast_modules_folder ${CMAKE_INSTALL_LIBDIR}/holdfast)
set(holdfast_is_shared OFF)
if(BUILD_SHARED_LIBS)
  set(holdfast_is_shared ON)
endif()
list(JOIN holdfast_components ", " holdfast_component_names)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/holdfastConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/holdfastConfig.cmake
  INSTALL_DESTINATION ${package_folder}
  PATH_VARS holdfast_modules_folder)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/holdfastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/holdfastConfig.cmake ${PROJECT_BINARY_DIR}/cmake/holdfastConfigVersion.cmake
  DESTINATION ${package_folder})
include(pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(holdfast_sbom ${PROJECT_BINARY_DIR}/share/holdfast.spdx.json)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share)
add_custom_command(OUTPUT ${holdfast_sbom}
  COMMAND ${PROJECT_SOURCE_DIR}/scripts/sbom.sh ${PROJECT_VERSION} "${holdfast_commit}" $<IF:$<BOOL:${HOLDFAST_SHORT_PROGRAM}>,static,dynamic>
    > ${holdfast_sbom}.new
  COMMAND ${CMAKE_COMMAND} -E rename ${holdfast_sbom}.new ${holdfast_sbom}
  DEPENDS ${PROJECT_SOURCE_DIR}/scripts/sbom.sh ${PROJECT_SOURCE_DIR}/packaging/third_party.tsv VERBATIM)
add_custom_target(holdfast_bill DEPENDS ${holdfast_sbom})
add_dependencies(holdfast_installed holdfast_bill)
install(FILES ${holdfast_sbom} DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(NOT TARGET holdfast)
  return()
endif()

install(TARGETS holdfast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET holdfast_full)
  install(TARGETS holdfast_full RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
endif()

# The command describes itself, so its manual and completions cannot fall behind it.
function(holdfast_prints file destination)
  set(output ${PROJECT_BINARY_DIR}/share/${file})
  cmake_path(GET output PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${output}
    COMMAND holdfast ${ARGN} > ${output}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${output}.new ${output}
    DEPENDS holdfast VERBATIM)
  set_property(TARGET holdfast_installed APPEND PROPERTY HOLDFAST_PRINTED ${output})
  install(FILES ${output} DESTINATION ${destination})
endfunction()

holdfast_prints(man/holdfast.1 ${CMAKE_INSTALL_MANDIR}/man1 help --man)
holdfast_prints(bash/holdfast ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
holdfast_prints(zsh/_holdfast ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
holdfast_prints(fish/holdfast.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
get_target_property(holdfast_printed holdfast_installed HOLDFAST_PRINTED)
add_custom_target(holdfast_manual DEPENDS ${holdfast_printed})
add_dependencies(holdfast_installed holdfast_manual)
