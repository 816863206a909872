"""The library of the sources that this lies in: conan create packaging/conan."""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy
from conan.tools.gnu import PkgConfigDeps

SOURCES = os.path.join(os.path.dirname(__file__), "..", "..")


class Holdfast(ConanFile):
    name = "holdfast"
    license = "Apache-2.0"
    description = "Leases with fencing tokens on the store you already run"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def set_version(self):
        header = open(os.path.join(SOURCES, "include", "holdfast", "version.hpp"), encoding="utf-8").read()
        self.version = ".".join(re.findall(r"define HOLDFAST_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    def export_sources(self):
        for folder in ("cmake", "include", "packaging", "scripts", "src"):
            copy(self, f"{folder}/*", SOURCES, self.export_sources_folder)
        for file in ("CMakeLists.txt", "LICENSE", "THIRD_PARTY.md"):
            copy(self, file, SOURCES, self.export_sources_folder)

    def requirements(self):
        self.requires("fmt/[>=9.1]")
        self.requires("sqlite3/[>=3.40]")
        self.requires("boost/[>=1.81]", options={"header_only": True})
        for name in ("hiredis", "libcurl", "libnghttp2", "libpq", "mariadb-connector-c", "openssl"):
            self.requires(f"{name}/[*]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HOLDFAST_CLI"] = False
        toolchain.cache_variables["HOLDFAST_TESTS"] = False
        toolchain.cache_variables["BUILD_SHARED_LIBS"] = bool(self.options.shared)
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The package of CMake that was installed says it all, the components too.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/holdfast"]
