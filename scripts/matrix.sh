#!/usr/bin/env bash
# Runs the conformance suite and a slice of torture on each server that people run. Ends with 1 if one of them cannot be
# had or fails, and says so in its table.
# usage: scripts/matrix.sh BUILD SECONDS SEED [NAME...]     without torture if SECONDS is 0
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

build=$1 seconds=$2 seed=$3
shift 3
names=("$@")
[[ ${#names[@]} -gt 0 ]] ||
  names=(valkey8 redis8 redis-cluster etcd35 mysql9 postgres13 postgres14 postgres15 postgres16 postgres17 postgres18
    postgres-promoted)
logs=$build/matrix
mkdir -p "$logs"

kind_of() {
  case $1 in
    valkey* | redis*) echo redis ;;
    *) echo "${1%%[0-9-]*}" ;;
  esac
}

# Where the programs are. Servers of the system in another role need no others.
programs_of() {
  case $1 in
    redis-cluster) echo /usr/bin ;;
    postgres-promoted) echo /usr/lib/postgresql/15/bin ;;
    *) "$here/matrix-servers.sh" "$1" ;;
  esac
}

# The suite of all stores, and what only some servers have: a cluster, a failover.
# shellcheck disable=SC2317  # It is called by name.
suites() { # NAME KIND
  local but=
  # A cluster is grade B, and the examination says so.
  [[ $1 != redis-cluster ]] || but='-*AHealthyStoreExaminesWell*'
  "$build/bin/store_conformance_test" --gtest_filter="*/$2$but" --gtest_brief=1 || return 1
  case $1 in
    redis-cluster | postgres-promoted) ;;
    redis* | valkey*) "$build/bin/redis_cluster_test" --gtest_brief=1 ;;
    postgres*) "$build/bin/postgres_failover_test" --gtest_brief=1 ;;
  esac
}

version_of() { # PROGRAMS
  local program
  for program in "$1"/{redis-server,etcd,mysqld,postgres}; do
    if [[ -x $program ]]; then "$program" --version 2>&1 | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?' | head -1; fi
  done
}

failed=0
table=""
row() { # NAME VERSION CONFORMANCE TORTURE
  table+=$(printf '%-17s %-8s %-12s %s' "$@")$'\n'
}

# What became of a command, in a word; what it printed is kept, and shown if it failed.
run() { # LOG COMMAND...
  local log=$1 status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  case $status in
    0) word=passed ;;
    # Only of torture: no violation, but not every fault met a client.
    3) word="passed, some faults met nobody" ;;
    *)
      word="FAILED"
      failed=1
      tail -60 "$log" >&2
      echo "matrix: all of it is in $log" >&2
      ;;
  esac
}

for name in "${names[@]}"; do
  if ! programs=$(programs_of "$name"); then
    failed=1
    row "$name" - "NOT TO BE HAD" -
    continue
  fi
  kind=$(kind_of "$name")
  version=$(version_of "$programs")
  echo "matrix: $name $version"
  role=HOLDFAST_SERVER_${kind^^}
  case $name in
    redis-cluster) role=HOLDFAST_SERVER_CLUSTER ;;
    postgres-promoted) role=HOLDFAST_SERVER_PROMOTED ;;
  esac
  export "$role=$programs"
  run "$logs/$name-conformance.log" suites "$name" "$kind"
  conformance=$word word=-
  if [[ $seconds -gt 0 ]]; then
    run "$logs/$name-torture.log" "$build/bin/torture" --store "$kind" --seconds "$seconds" --seed "$seed"
  fi
  row "$name" "$version" "$conformance" "$word"
  unset "$role"
done
printf '\n%-17s %-8s %-12s %s\n%s' server version conformance torture "$table"
exit "$failed"
