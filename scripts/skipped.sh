#!/usr/bin/env bash
# Says which tests of the last runs could not run on this machine, and why. They say it themselves, in words that begin
# as `not_here` in tests/support/isolation.hpp does.
# usage: scripts/skipped.sh BUILD_FOLDER...
set -euo pipefail

logs=()
for folder in "$@"; do
  [[ -f $folder/Testing/Temporary/LastTest.log ]] && logs+=("$folder/Testing/Temporary/LastTest.log")
done
((${#logs[@]} > 0)) || exit 0

skipped=$(awk '
  /^\[ RUN      \]/ { reason = "" }
  /^not on this machine: / { reason = substr($0, length("not on this machine: ") + 1) }
  /^\[  SKIPPED \] .*\([0-9]+ ms\)$/ && reason != "" { print "  " $4 ": " reason; reason = "" }
' "${logs[@]}" | sort -u)

if [[ -z $skipped ]]; then
  echo "holdfast: every test could run on this machine"
else
  echo "holdfast: $(wc -l <<<"$skipped") tests could not run on this machine:"
  echo "$skipped"
fi
