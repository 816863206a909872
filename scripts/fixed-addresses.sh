#!/usr/bin/env bash
# Runs a command without address randomisation where the kernel randomises more than the sanitizers of
# GCC 12 can map (vm.mmap_rnd_bits above 28). Everywhere else the command runs as it is.
set -euo pipefail

bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)
if [[ $bits -gt 28 ]] && setarch --addr-no-randomize true 2>/dev/null; then
  exec setarch --addr-no-randomize "$@"
fi
exec "$@"
