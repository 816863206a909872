#!/usr/bin/env bash
# Searches the models of docs/model with Spin: as they are, where nothing may be found, and with each fault built in,
# where something must be.
# usage: scripts/model.sh [MODEL[+FAULT]]...   (all without a name)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

memory_mb=2000
seconds=${SECONDS_PER_MODEL:-600}
models=$PWD/docs/model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
variants=("$@")
if [[ ${#variants[@]} -eq 0 ]]; then
  variants=(
    lease lease+RENEW_UNCHECKED lease+RELEASE_UNCHECKED lease+STEAL_KEEPS_TOKEN lease+DEADLINE_FROM_REPLY
    fence fence+NO_FENCE fence+NO_SEAL fence+TOKEN_ONLY
  )
fi

# The whole state space, exactly: states are compressed, never hashed away. Processes that wait for ever are no
# error here, because an operator may have nothing to do.
search() {
  local model=${1%%+*} fault=${1#*+} definition=()
  [[ $fault == "$1" ]] || definition=("-D$fault")
  mkdir "$work/$1"
  cd "$work/$1"
  spin -a "${definition[@]}" "$models/$model.pml" >search.log
  gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=$memory_mb -o pan pan.c
  timeout "$seconds" ./pan -E -m1000000 >search.log 2>&1
}

# "none", the assertion that broke, or why the search has no result.
result_of() {
  local log=$work/$1/search.log
  if grep -qE 'max search depth too small|reached -DMEMLIM|out of memory' "$log" || ! grep -q 'errors: ' "$log"; then
    echo "not finished"
  elif grep -q 'errors: 0' "$log"; then
    echo none
  else
    sed -n 's/^pan:[0-9]*: assertion violated \(.*\) (at depth.*/\1/p' "$log"
  fi
}

wrong=0
printf '%-26s %12s  %s\n' model states 'broken assertion'
for variant in "${variants[@]}"; do
  (search "$variant") || true
  result=$(result_of "$variant")
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/$variant/search.log")
  expectation=met
  case $variant in
    *+*) [[ $result != none && $result != "not finished" && -n $result ]] || expectation=missed ;;
    *) [[ $result == none ]] || expectation=missed ;;
  esac
  [[ $expectation == met ]] || wrong=$((wrong + 1))
  printf '%-26s %12s  %s%s\n' "$variant" "${states:--}" "$result" "$([[ $expectation == met ]] || echo '   <- NOT AS EXPECTED')"
done
[[ $wrong -eq 0 ]] && echo "model: ${#variants[@]} searches ended as expected"
