# What `cmake --install` puts where. `holdfast_installed` builds all of it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_custom_target(holdfast_installed ALL DEPENDS holdfast_library)

set_target_properties(holdfast_api PROPERTIES EXPORT_NAME api)
install(TARGETS holdfast_library holdfast_api EXPORT holdfast
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT holdfast
  FILE holdfastTargets.cmake NAMESPACE holdfast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/holdfastConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/holdfastConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/holdfastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/holdfastConfig.cmake ${PROJECT_BINARY_DIR}/cmake/holdfastConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(NOT TARGET holdfast)
  return()
endif()

install(TARGETS holdfast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET holdfast_full)
  install(TARGETS holdfast_full RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
endif()

get_property(holdfast_modules GLOBAL PROPERTY HOLDFAST_MODULES)
if(holdfast_modules)
  install(TARGETS ${holdfast_modules} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/holdfast)
  add_dependencies(holdfast_installed ${holdfast_modules})
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
