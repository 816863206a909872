#!/usr/bin/env bash
# Puts what a package-lock.json names into node_modules beside it, unless that was done. The lock file names no address:
# packages come from the registry that this machine is set up for, and their hashes are checked.
# usage: scripts/npm-packages.sh FOLDER...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for folder in "$@"; do
  [[ $folder/node_modules/.package-lock.json -nt $folder/package-lock.json ]] && continue
  (cd "$folder" && npm ci --no-audit --no-fund --loglevel=error)
  touch "$folder/node_modules/.package-lock.json"
done
