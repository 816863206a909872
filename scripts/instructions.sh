#!/usr/bin/env bash
# Counts the instructions of one acquire and release, by callgrind: unlike times, they hardly differ from run to run.
# usage: scripts/instructions.sh PAIRS [URL]...   (PAIRS is the program build/bench/bin/pairs)
set -euo pipefail

pairs=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
urls=("$@")
[[ ${#urls[@]} -gt 0 ]] || urls=(memory: "file:$folder/store" "sqlite:$folder/store.db")

instructions() {
  valgrind --tool=callgrind --callgrind-out-file="$folder/out" "$pairs" "$1" "$2" 2>"$folder/log" || { cat "$folder/log" >&2; exit 1; }
  awk '/^summary:/ { print $2 }' "$folder/out"
}

# The difference of two runs leaves out what starting and ending cost.
for url in "${urls[@]}"; do
  few=$(instructions "$url" 100)
  more=$(instructions "$url" 300)
  printf '%-10s %8d instructions a pair\n' "${url%%:*}" $(((more - few) / 200))
done
