#!/usr/bin/env bash
# Plants the bugs of tests/mutants one after the other in a copy of the tree, and looks whether the test that is named
# in the patch finds each of them. A program is a target whose tests are gtest's, or a TypeScript file with tests.
# usage: scripts/mutants.sh [NAME]...   (all without a name; ends with 1 if one survives)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

project=$PWD
# Below build/, so that a second run compiles only what has changed.
copy=$project/build/mutants
jobs=${JOBS:-$(nproc)}
names=("$@")
if [[ ${#names[@]} -eq 0 ]]; then
  for patch in tests/mutants/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi

# The copy has its own place in the cache of the compiler: paths count from its root.
export CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

field() { sed -n "s/^$2: //p" "tests/mutants/$1.patch"; }

# Content decides, not time: a run that was broken off leaves a planted bug behind.
copy_tree() {
  local file
  while IFS= read -r -d '' file; do
    [[ -f $file ]] || continue
    cmp -s "$file" "$copy/$file" || install -D --mode="$(stat -c %a "$file")" "$file" "$copy/$file"
  done < <(git ls-files -z --cached --others --exclude-standard)
}

build() { nice ninja -C "$copy/build" -j "$jobs" "$@" >"$copy/build.log" 2>&1; }

is_script() { [[ $1 == *.ts ]]; }

# Sets `targets` to what has to be built for a program: tests in TypeScript run the command, the sample's server and its
# pages.
find_targets() {
  targets=("$1")
  if is_script "$1"; then targets=(holdfast cockpit cockpit_pages); fi
}

# As ctest does it, in the copy. The packages are those of the tree itself.
run_script() {
  local program=$1 bundles=$copy/build/bundles name full=$copy/build/libexec/holdfast-full pattern
  name=$(basename "$program" .ts)
  # The name is a pattern: every sign that means something in one is taken as it is.
  pattern=^$(sed 's/[][\\.*^$+?(){}|/]/\\&/g' <<<"$2")\$
  (
    cd "$copy/$(dirname "$program")"
    esbuild "$name.ts" --bundle --platform=node --format=cjs --external:playwright-core --external:axe-core \
      --log-level=warning --outdir="$bundles"
    esbuild "$copy/clients/js/src/index.ts" --bundle --format=iife --global-name=holdfast --log-level=warning \
      --outfile="$bundles/client.js"
  ) >"$copy/test.log" 2>&1 || return 1
  [[ -x $full ]] || full=$copy/build/bin/holdfast
  mkdir -p "$copy/tmp"
  # A test that hangs is killed with all that it has started, and what it kept goes with it.
  (
    set -m
    env TMPDIR="$copy/tmp" HOLDFAST="$copy/build/bin/holdfast" HOLDFAST_FULL="$full" \
      HOLDFAST_BIN="$copy/build/bin/holdfast" COCKPIT_BIN="$copy/build/bin/cockpit" \
      COCKPIT_START="$copy/examples/cockpit/start.sh" COCKPIT_WEB="$copy/build/examples/cockpit/web/dist" \
      HOLDFAST_CLIENT_BUNDLE="$bundles/client.js" NODE_PATH="$project/tests/console/node_modules" \
      timeout 120 node --test --test-timeout=30000 --test-name-pattern="$pattern" "$bundles/$name.js" &
    status=0
    wait $! || status=$?
    kill -KILL -- -$! 2>/dev/null || true
    rm -rf "$copy/tmp"
    exit "$status"
  ) >"$copy/test.log" 2>&1
}

# A hang counts as a failure, because in a test run it is one.
run_test() {
  local program=$1 test=$2
  if is_script "$program"; then
    run_script "$program" "$test"
    return
  fi
  # In a shell of its own, which keeps to itself that the program was killed.
  bash -c 'cd "$1" && timeout 120 "bin/$2" "--gtest_filter=$3" || exit 1' run "$copy/build" "$program" "$test" \
    >"$copy/test.log" 2>&1
}

ran_something() { grep -qE '^\[==========\] [1-9][0-9]* tests? from .* ran|^# pass [1-9]' "$copy/test.log"; }

# Without the bug the test must pass; otherwise finding it would mean nothing.
check_without_bugs() {
  local programs=() name targets
  for name in "${names[@]}"; do
    find_targets "$(field "$name" Program)"
    programs+=("${targets[@]}")
  done
  if ! build "${programs[@]}"; then
    cat "$copy/build.log" >&2
    exit 1
  fi
  for name in "${names[@]}"; do
    if ! run_test "$(field "$name" Program)" "$(field "$name" Test)" || ! ran_something; then
      cat "$copy/test.log" >&2
      echo "mutants: $(field "$name" Test) does not pass without the bug, or does not exist" >&2
      exit 1
    fi
  done
}

# Sets `verdict`; fails if nobody noticed the bug.
try() {
  local name=$1 patch=$project/tests/mutants/$1.patch program test targets noticed=0
  program=$(field "$name" Program)
  test=$(field "$name" Test)
  find_targets "$program"
  # Git must take the copy for a folder of its own: to our repository it is an ignored one, and nothing is applied.
  if ! GIT_CEILING_DIRECTORIES=$project/build git -C "$copy" apply "$patch" 2>"$copy/build.log"; then
    verdict="does not apply"
    noticed=1
  elif ! build "${targets[@]}"; then
    verdict="does not build"
    noticed=1
  elif run_test "$program" "$test"; then
    verdict="NOT FOUND by $program $test"
    noticed=1
  else
    verdict="found by $program $test"
  fi
  copy_tree
  return "$noticed"
}

for name in "${names[@]}"; do
  row="| [$name]($name.patch) | $(field "$name" What) | \`$(field "$name" Program)\` | \`$(field "$name" Test)\` |"
  if ! grep -qxF "$row" tests/mutants/README.md; then
    printf 'mutants: tests/mutants/README.md lacks this row:\n%s\n' "$row" >&2
    exit 1
  fi
done
mkdir -p "$copy"
copy_tree
"$copy/scripts/configure.sh" release HOLDFAST_TESTS=ON
check_without_bugs
survivors=0
for name in "${names[@]}"; do
  try "$name" || survivors=$((survivors + 1))
  printf '%-28s %s\n' "$name" "$verdict"
done
echo "mutants: $((${#names[@]} - survivors)) of ${#names[@]} found"
[[ $survivors -eq 0 ]]
