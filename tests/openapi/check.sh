#!/usr/bin/env bash
# Reads the OpenAPI document of a running daemon with two validators; a warning of either fails, too.
# usage: tests/openapi/check.sh HOLDFAST   (after scripts/npm-packages.sh tests/openapi)
set -euo pipefail

holdfast=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true

folder=$(mktemp -d)
daemon=
trap 'if [[ -n $daemon ]]; then kill "$daemon"; wait "$daemon" || true; fi; rm -rf "$folder"' EXIT
HOLDFAST_STORE=sqlite:$folder/holdfast.db "$holdfast" serve --listen 127.0.0.1:0 --port-file "$folder/port" \
  >"$folder/output" 2>&1 &
daemon=$!
for ((tries = 0; tries < 600; ++tries)); do
  [[ -s $folder/port ]] && break
  if ! kill -0 "$daemon" 2>/dev/null; then
    cat "$folder/output" >&2
    exit 1
  fi
  sleep 0.1
done
curl --fail --silent --show-error --output "$folder/openapi.json" "http://127.0.0.1:$(<"$folder/port")/openapi.json"

node_modules/.bin/redocly lint --extends recommended-strict "$folder/openapi.json"
node_modules/.bin/spectral lint --ruleset .spectral.yaml --fail-severity warn "$folder/openapi.json"
echo "openapi: redocly and spectral accept the document"
