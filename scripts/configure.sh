#!/usr/bin/env bash
# Configures a preset, unless that was done after the presets were last edited; ninja notices the rest.
# usage: scripts/configure.sh PRESET [VARIABLE=VALUE]...   (the variables are checked against the cache)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1
shift
folder=build/$preset
[[ $preset == release ]] && folder=build

is_current() {
  [[ $folder/build.ninja -nt CMakePresets.json ]] || return 1
  local setting
  for setting in "$@"; do
    grep -q "^${setting%%=*}:[A-Z]*=${setting#*=}\$" "$folder/CMakeCache.txt" || return 1
  done
}

is_current "$@" && exit 0
report=$(mktemp)
trap 'rm -f "$report"' EXIT
if ! cmake --preset "$preset" "${@/#/-D}" >"$report" 2>&1; then
  cat "$report" >&2
  exit 1
fi
