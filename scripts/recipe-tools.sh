#!/usr/bin/env bash
# Fetches what the recipe of docs/examples/knex needs of npm. Without it, the test of that recipe says that it could not
# run.
# usage: scripts/recipe-tools.sh FOLDER
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
wanted=$root/docs/examples/knex/package.json
mkdir -p "$1"
cd "$1"

cmp -s "$wanted" package.json && [[ -x node_modules/.bin/knex ]] && exit 0
rm -rf node_modules
cp "$wanted" package.json
# Without a lock file: it would name the registry that this machine happens to use.
npm install --no-package-lock --no-audit --no-fund --loglevel=error >/dev/null ||
  echo "recipe-tools.sh: npm could not fetch knex, so its recipe is not tested" >&2
rm -f node_modules/.package-lock.json
