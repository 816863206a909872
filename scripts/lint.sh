#!/usr/bin/env bash
# Checks what a compiler does not.
# usage: scripts/lint.sh format|apply-format|shell|mutants|changes|analysis...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=${JOBS:-$(nproc)}
remembered=build/lint

sources() { find include src tests bench examples -name '*.cpp' -o -name '*.hpp' | sort; }

apply_format() { sources | xargs clang-format-19 -i; }

check_format() {
  if ! sources | xargs clang-format-19 --dry-run -Werror; then
    echo "lint: \`make format\` repairs this" >&2
    return 1
  fi
}

check_shell() { shellcheck .ci/run scripts/*.sh tests/install/*.sh tests/console/*.sh tests/openapi/*.sh examples/*/*.sh; }

# A planted bug that no longer fits into the code is one that nobody looks for.
check_mutants() {
  local patch failed=0
  for patch in tests/mutants/*.patch; do git apply --check "$patch" || failed=1; done
  return "$failed"
}

# One source file through clang-tidy, without the checks that match `without`. A file that was clean is not looked at
# again until it, a header or the configuration changes. Each is read alone, so that a missing include is noticed.
analyse_file() {
  local headers_key=$1 without=$2 file=$3 key report kind=${2:+-in-part}
  if [[ -n ${analysis_ends_at:-} ]] && ((EPOCHSECONDS >= analysis_ends_at)); then
    echo "lint: no time left for $file; \`make lint\` looks at it" >&2
    return 0
  fi
  key=$( (echo "$headers_key" && cat "$file") | sha256sum | cut -c1-32)
  [[ -f $remembered/$key || -f $remembered/$key$kind ]] && return 0
  # On standard error clang-tidy counts what it found in headers of the system, which is nobody's business here.
  if report=$(clang-tidy-19 -p build/dev --quiet ${without:+"--checks=-$without"} "$file" 2>/dev/null); then
    touch "$remembered/$key$kind"
    return 0
  fi
  printf '%s\n' "${report:-lint: clang-tidy could not read $file}" >&2
  return 1
}
export -f analyse_file
export remembered

# The files that standard input names, without the checks that match $1.
analyse_files() {
  local headers_key
  mkdir -p "$remembered"
  headers_key=$( (cat .clang-tidy && find include src -name '*.hpp' -print0 | sort -z | xargs -0 cat) | sha256sum)
  xargs -r -d '\n' -P "$jobs" -n 1 bash -euo pipefail -c 'analyse_file "$@"' analyse "$headers_key" "$1"
}

# The compile commands of single files. The other presets compile several files as one.
configure_commands() {
  scripts/configure.sh dev
  cmake --build build/dev --target build.ninja >/dev/null
}

analyse() {
  configure_commands
  find src -name '*.cpp' | sort | analyse_files ''
}

# The commit that a change began with: where it left main, or the commit before the last one on main itself.
base_of_change() {
  local main base=''
  for main in origin/main upstream/main main; do
    base=$(git merge-base HEAD "$main" 2>/dev/null) && break
  done
  if [[ -z $base ]] || { [[ $base == "$(git rev-parse HEAD)" ]] && git diff --quiet HEAD -- include src; }; then
    base=$(git rev-parse --verify --quiet HEAD~1) || return 1
  fi
  echo "$base"
}

# The sources to look at for files of src/ and include/ that changed since $1, the most changed first. A header is seen
# through its source, or through one that includes it.
changed_sources() {
  local path
  {
    git diff --numstat --no-renames "$1" -- include src
    git ls-files --others --exclude-standard -- include src | sed 's/^/1\t0\t/'
  } | sort -k1,1nr | cut -f3 | while read -r path; do
    case $path in
      *.hpp)
        if [[ -f ${path%.hpp}.cpp ]]; then
          path=${path%.hpp}.cpp
        else
          path=${path#src/}
          path=$(grep -rlF --include='*.cpp' "#include \"${path#include/}\"" src | sort | head -n 1 || true)
        fi
        ;;
      *.cpp) ;;
      *) continue ;;
    esac
    if [[ -f $path ]]; then echo "$path"; fi
  done | awk '!seen[$0]++'
}

# What a test run has time for: a dozen files, about a minute (none is begun after 45 s), and not the analyser of paths,
# which takes two thirds of the time. `make lint` does all of it.
analyse_changes() {
  local most=12 seconds=45 base files=()
  if ! base=$(base_of_change); then
    echo "lint: there is no earlier commit to compare with, so no file counts as changed"
    return 0
  fi
  mapfile -t files < <(changed_sources "$base")
  if ((${#files[@]} > most)); then
    echo "lint: $((${#files[@]} - most)) of ${#files[@]} changed files are left to \`make lint\`"
    files=("${files[@]:0:most}")
  fi
  ((${#files[@]} == 0)) && return 0
  configure_commands
  export analysis_ends_at=$((EPOCHSECONDS + seconds))
  printf '%s\n' "${files[@]}" | analyse_files 'clang-analyzer-*'
}

for check in "$@"; do
  case $check in
    format) check_format ;;
    apply-format) apply_format ;;
    shell) check_shell ;;
    mutants) check_mutants ;;
    changes) analyse_changes ;;
    analysis) analyse ;;
    *)
      echo "lint.sh: there is no check \"$check\"" >&2
      exit 64
      ;;
  esac
  echo "lint: $check passed"
done
