# An overlay port: vcpkg install holdfast --overlay-ports=packaging/vcpkg. It builds the library of the sources that it
# lies in.
cmake_path(GET CURRENT_PORT_DIR PARENT_PATH source)
cmake_path(GET source PARENT_PATH source)
cmake_path(GET source PARENT_PATH SOURCE_PATH)

vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
vcpkg_cmake_configure(SOURCE_PATH ${SOURCE_PATH} OPTIONS -DHOLDFAST_CLI=OFF -DHOLDFAST_TESTS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/holdfast)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/debug/include ${CURRENT_PACKAGES_DIR}/debug/share)
vcpkg_install_copyright(FILE_LIST ${SOURCE_PATH}/LICENSE ${SOURCE_PATH}/THIRD_PARTY.md)
