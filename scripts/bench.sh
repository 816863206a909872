#!/usr/bin/env bash
# Installs what is needed, builds, and measures. BENCH=P1,P9 measures only these, beside what people would use instead.
# usage: scripts/bench.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-packages.sh build bench peers
scripts/configure.sh bench
cmake --build build/bench --target benchmarks
programs=build/bench/bin
peers=build/bench/peers
scripts/build-peers.sh "$peers"
built=$SECONDS

if [[ -z ${BENCH:-} ]]; then
  for program in "$programs"/*_bench; do "$program" --benchmark_min_time=0.2; done
  scripts/instructions.sh "$programs/pairs"
fi
"$programs/peers" "$programs/holdfast" "$programs/stamp" "$peers" bench/results/latest.json
echo "bench: $built s to install and build, $((SECONDS - built)) s to measure; bench/results has latest.json and latest.svg"
