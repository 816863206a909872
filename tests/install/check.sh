#!/usr/bin/env bash
# Builds tests/install/consumer as users do, by CMake and by pkg-config against an installation that was moved, and with
# the sources beside it, and takes locks with it, also on real servers, by loaded and by linked stores.
# usage: check.sh CMAKE SOURCE_DIR BINARY_DIR COMPILER BUILD_TYPE
# HOLDFAST_TEST_SERVERS names the folder with the ports of the servers.
set -euo pipefail

cmake=$1 sources=$2 binaries=$3 compiler=$4 build_type=$5
unset HOLDFAST_MODULES
# Always the same folder, so that the compiler's cache knows it.
work=$binaries/install_test
rm -rf "$work"
mkdir -p "$work"

fail() {
  echo "check.sh: $*" >&2
  exit 1
}

port_of() { cat "$HOLDFAST_TEST_SERVERS/$1"; }
password=canary-7f3a91
url_of() { # STORE NAME
  case $1 in
    memory) echo memory: ;;
    file) echo "file:$work/$2" ;;
    sqlite) echo "sqlite:$work/$2.db" ;;
    postgres) echo "postgres://holdfast:$password@127.0.0.1:$(port_of postgres)/postgres?schema=hf_${2//-/_}" ;;
    redis) echo "redis://:$password@127.0.0.1:$(port_of redis)/0?prefix=$2" ;;
    etcd) echo "etcd://127.0.0.1:$(port_of etcd)/$2" ;;
  esac
}

takes_locks() { # PROGRAM NAME STORE...
  local program=$1 name=$2-$$ store urls=()
  shift 2
  for store in "$@"; do urls+=("$(url_of "$store" "$name")"); done
  CONSUMER_STORES=${urls[*]} "$program" || fail "$name: $program ended with status $?"
}
every_store=(memory file sqlite postgres redis etcd)

build() {
  local folder=$1
  shift
  if ! {
    "$cmake" -G Ninja -S "$sources/tests/install/consumer" -B "$folder" -DCMAKE_CXX_COMPILER="$compiler" \
      -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@" && "$cmake" --build "$folder" --target loads links
  } >"$folder.log" 2>&1; then
    cat "$folder.log" >&2
    fail "$folder cannot be built"
  fi
}

# The staged package must stand alone: a path into the project would work here and nowhere else.
"$cmake" --install "$binaries" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
prefix=$work/moved
if grep -rlE "$sources/(src|include|cmake)|$work/first" "$prefix" --include='*.cmake' --include='*.hpp' --include='*.pc'; then
  fail "the installed package names folders that no user has"
fi
libdir=$(dirname "$(find "$prefix" -name libholdfast.a)")

# The public headers are what is installed, and what the docs tell.
headers=$(cd "$sources/include/holdfast" && ls ./*.hpp)
[[ $headers == "$(cd "$prefix/include/holdfast" && ls ./*.hpp)" ]] || fail "other headers are installed than include/ has"
for header in $headers; do
  grep -qF 'namespace [[gnu::visibility("default")]] holdfast {' "$sources/include/holdfast/$header" ||
    fail "$header does not say that it is visible in a shared library"
  grep -q "^|.*\`${header#./}\`.*|" "$sources/docs/reference/library.md" || fail "docs/reference/library.md leaves out $header"
done

build "$work/by_package" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE="$build_type"
takes_locks "$work/by_package/loads" by-package-loads "${every_store[@]}"

export PKG_CONFIG_PATH=$libdir/pkgconfig
packages=(holdfast-postgres holdfast-mysql holdfast-redis holdfast-etcd holdfast-http)
read -ra loads_flags < <(pkg-config --cflags --libs holdfast)
read -ra links_flags < <(pkg-config --cflags --libs "${packages[@]}")
mkdir "$work/by_pkgconfig"
"$compiler" -std=c++23 "$sources/tests/install/consumer/main.cpp" -o "$work/by_pkgconfig/loads" "${loads_flags[@]}"
takes_locks "$work/by_pkgconfig/loads" by-pkgconfig-loads "${every_store[@]}"
"$compiler" -std=c++23 "$sources/tests/install/consumer/main.cpp" -o "$work/by_pkgconfig/links" "${links_flags[@]}"

# What is linked needs no modules.
mv "$libdir/holdfast" "$work/modules"
takes_locks "$work/by_package/links" by-package-links "${every_store[@]}"
takes_locks "$work/by_pkgconfig/links" by-pkgconfig-links "${every_store[@]}"
CONSUMER_STORES=redis://127.0.0.1:1 "$work/by_package/loads" 2>"$work/refused" && fail "a store without its module was opened"
grep -q "holdfast-store-redis.so is not installed" "$work/refused" || fail "$(cat "$work/refused")"
mv "$work/modules" "$libdir/holdfast"

# Beside a user's sources, as a shared library and one module. Whether it compiles and links is the question here, not how
# quickly it runs.
build "$work/by_sources" -DHOLDFAST_SOURCES="$sources" -DCMAKE_UNITY_BUILD=ON -DBUILD_SHARED_LIBS=ON -Dcomponents=redis
takes_locks "$work/by_sources/links" by-sources memory file sqlite redis
shared=$(find "$work/by_sources" -name 'libholdfast.so.*.*.*')
[[ -n $shared ]] || fail "the shared library is not in the folder of the build"
readelf --dynamic "$shared" | grep -q 'SONAME.*libholdfast\.so\.[0-9]*\.[0-9]*\]' || fail "$shared has no soname"
nm --dynamic --demangle --defined-only "$shared" | cut -d ' ' -f 3- >"$work/exported"
grep -q '^holdfast::open_store(' "$work/exported" || fail "$shared exports no open_store"
if grep -vE '^((typeinfo|typeinfo name|vtable) for )?holdfast::' "$work/exported" ||
  grep -E 'holdfast::(base|client|guards|kernel|sql|stores|values)::|::(Core|Impl)::' "$work/exported"; then
  fail "$shared exports what is not in the public headers"
fi

# A folder outside of the prefix is taken as it was given.
"$cmake" -G Ninja -S "$sources" -B "$work/absolute" -DCMAKE_CXX_COMPILER="$compiler" -DHOLDFAST_CLI=OFF \
  -DCMAKE_INSTALL_PREFIX=/usr/nowhere -DCMAKE_INSTALL_LIBDIR=/elsewhere/lib >/dev/null 2>&1 || fail "an absolute LIBDIR cannot be configured"
grep -qF 'HOLDFAST_MODULES_INSTALLED=\"/elsewhere/lib/holdfast\"' "$work/absolute/build.ninja" ||
  fail "with an absolute CMAKE_INSTALL_LIBDIR modules are looked for in a wrong folder"

if [[ -x $prefix/bin/holdfast ]]; then
  "$prefix/bin/holdfast" version >/dev/null
  for page in man/man1/holdfast.1 bash-completion/completions/holdfast zsh/site-functions/_holdfast fish/vendor_completions.d/holdfast.fish; do
    [[ -s $prefix/share/$page ]] || fail "share/$page is missing or empty"
  done
fi

# Whatever is linked is in the SBOM and the notices.
sbom=$(find "$prefix/share/doc" -name holdfast.spdx.json)
python3 -m json.tool "$sbom" >/dev/null || fail "the SBOM is no JSON"
links() { # the names of the libraries that the installed files load and that the static program contains: libfmt
  find "$prefix/bin" "$prefix/libexec" "$libdir/holdfast" -type f -exec readelf --dynamic {} + 2>/dev/null |
    sed -nE 's/.*NEEDED.*\[(.*)\.so.*/\1/p'
  grep -A 12 '^build bin/holdfast:' "$binaries/build.ninja" | grep -oE '/usr/[^ ]*/lib[^ /]*\.a' | sed -E 's|.*/(.*)\.a|\1|'
}
for library in $(links | sort -u); do
  name=$(awk -F '\t' -v file="$library" '!/^#/ && index(" " $6 " ", " " file " ") { print $1 }' "$sources/packaging/third_party.tsv")
  [[ -n $name ]] || fail "packaging/third_party.tsv leaves out $library"
  grep -qF "\"name\": \"$name\"" "$sbom" || fail "the SBOM leaves out $name"
  grep -qF "| [$name](" "$sources/THIRD_PARTY.md" || fail "THIRD_PARTY.md leaves out $name"
done
version=$("$prefix/bin/holdfast" version --json | sed -E 's/.*"version":"([^"]*)".*/\1/')
grep -qF "\"version\": \"$version\"" "$sources/packaging/vcpkg/holdfast/vcpkg.json" || fail "the port of vcpkg is of another version"

# Another prefix is another build, and installing asks nobody for packages.
steps=$(make -C "$sources" --no-print-directory -n install PREFIX=/opt/elsewhere)
grep -q "scripts/configure.sh release .*CMAKE_INSTALL_PREFIX=/opt/elsewhere" <<<"$steps" || fail "make install does not configure for its PREFIX"
! grep -q install-packages <<<"$steps" || fail "make install installs packages"
