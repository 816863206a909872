#!/usr/bin/env bash
# Checks what a compiler does not.
# usage: scripts/lint.sh format|apply-format|shell|mutants|analysis...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=${JOBS:-$(nproc)}
remembered=build/lint

sources() { find include src tests bench -name '*.cpp' -o -name '*.hpp' | sort; }

apply_format() { sources | xargs clang-format-19 -i; }

check_format() {
  if ! sources | xargs clang-format-19 --dry-run -Werror; then
    echo "lint: \`make format\` repairs this" >&2
    return 1
  fi
}

check_shell() { shellcheck .ci/run scripts/*.sh tests/install/*.sh; }

# A planted bug that no longer fits into the code is one that nobody looks for.
check_mutants() {
  local patch failed=0
  for patch in tests/mutants/*.patch; do git apply --check "$patch" || failed=1; done
  return "$failed"
}

# One source file through clang-tidy. A file that was clean is not looked at again until it, a header or
# the configuration changes. Each is read alone, so that a missing include is noticed.
analyse_file() {
  local file=$1 headers_key=$2 key report
  key=$( (echo "$headers_key" && cat "$file") | sha256sum | cut -c1-32)
  [[ -f $remembered/$key ]] && return 0
  # On standard error clang-tidy counts what it found in headers of the system, which is nobody's business here.
  if report=$(clang-tidy-19 -p build/dev --quiet "$file" 2>/dev/null); then
    touch "$remembered/$key"
    return 0
  fi
  printf '%s\n' "${report:-lint: clang-tidy could not read $file}" >&2
  return 1
}
export -f analyse_file
export remembered

analyse() {
  local headers_key
  mkdir -p "$remembered"
  headers_key=$( (cat .clang-tidy && find include src -name '*.hpp' -print0 | sort -z | xargs -0 cat) | sha256sum)
  find src -name '*.cpp' -print0 | sort -z |
    xargs -0 -P "$jobs" -I '{}' bash -euo pipefail -c 'analyse_file "$@"' analyse '{}' "$headers_key"
}

for check in "$@"; do
  case $check in
    format) check_format ;;
    apply-format) apply_format ;;
    shell) check_shell ;;
    mutants) check_mutants ;;
    analysis) analyse ;;
    *)
      echo "lint.sh: there is no check \"$check\"" >&2
      exit 64
      ;;
  esac
  echo "lint: $check passed"
done
