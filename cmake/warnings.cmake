# Every target of ours links holdfast::warnings, privately: users of the library keep their own flags.
add_library(holdfast_warnings INTERFACE)
add_library(holdfast::warnings ALIAS holdfast_warnings)
target_compile_features(holdfast_warnings INTERFACE cxx_std_23)
target_compile_options(holdfast_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough
  # Clang only builds the fuzzers, and its opinion changes with every version.
  $<$<AND:$<BOOL:${HOLDFAST_WARNINGS_ARE_ERRORS}>,$<CXX_COMPILER_ID:GNU>>:-Werror>
  # With optimisation GCC 12 sees overlapping copies in std::string's own operator+ (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  -fstack-protector-strong)
# A distribution has a level of its own.
if(NOT CMAKE_CXX_FLAGS MATCHES "_FORTIFY_SOURCE")
  target_compile_definitions(holdfast_warnings INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
endif()
