#!/usr/bin/env bash
# Builds tests/install/consumer against a staged installation and against the sources, and runs both.
# usage: check.sh CMAKE SOURCE_DIR BINARY_DIR COMPILER BUILD_TYPE
set -euo pipefail

cmake=$1 sources=$2 binaries=$3 compiler=$4 build_type=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build_and_run() {
  local folder=$1
  shift
  "$cmake" -G Ninja -S "$sources/tests/install/consumer" -B "$folder" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_BUILD_TYPE="$build_type" "$@" >/dev/null
  "$cmake" --build "$folder" --target consumer >"$folder/log" || {
    cat "$folder/log" >&2
    return 1
  }
  "$(find "$folder" -name consumer -type f -perm -u+x)" memory: "file:$folder/locks" "sqlite:$folder/locks.db"
}

"$cmake" --install "$binaries" --prefix "$work/stage" >/dev/null
# The staged package must stand alone: a path into the project would work here and nowhere else.
if grep -rqF "$sources" "$work/stage" --include='*.cmake' --include='*.hpp'; then
  echo "check.sh: the installed package names $sources" >&2
  exit 1
fi
build_and_run "$work/by_package" -DCMAKE_PREFIX_PATH="$work/stage"
# Whether it compiles and links is the question here, not how quickly it runs.
build_and_run "$work/by_sources" -DHOLDFAST_SOURCES="$sources" -DCMAKE_BUILD_TYPE=Debug

if [[ -x $work/stage/bin/holdfast ]]; then
  "$work/stage/bin/holdfast" version >/dev/null
  for page in man/man1/holdfast.1 bash-completion/completions/holdfast zsh/site-functions/_holdfast fish/vendor_completions.d/holdfast.fish; do
    [[ -s $work/stage/share/$page ]] || {
      echo "check.sh: share/$page is missing or empty" >&2
      exit 1
    }
  done
fi
