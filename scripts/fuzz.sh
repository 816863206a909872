#!/usr/bin/env bash
# Lets libFuzzer search every decoder of tests/fuzz for a while. What it learns stays in build/fuzz/corpus; what breaks
# is left in build/fuzz/found, and `build/bin/fuzz_NAME FILE` shows it again.
# usage: scripts/fuzz.sh SECONDS_EACH [NAME]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=$1
shift
names=("$@")
if [[ ${#names[@]} -eq 0 ]]; then
  for folder in tests/fuzz/corpus/*/; do names+=("$(basename "$folder")"); done
fi

broken=0
mkdir -p build/fuzz/found
for name in "${names[@]}"; do
  mkdir -p "build/fuzz/corpus/$name"
  log=build/fuzz/$name.log
  if "build/fuzz/bin/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -use_value_profile=1 \
    -artifact_prefix="build/fuzz/found/$name-" -print_final_stats=1 \
    "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    result=clean
  else
    result="BROKEN, see $log"
    broken=$((broken + 1))
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  seed=$(sed -n 's/^INFO: Seed: *//p' "$log")
  printf '%-12s %12s inputs  seed %-11s %s\n' "$name" "${runs:--}" "${seed:--}" "$result"
done
[[ $broken -eq 0 ]]
