#!/bin/sh
# Every instance of the application may call this at its start. DATABASE_URL is a postgresql:// URL.
set -eu
holdfast init --fence --database "$DATABASE_URL" --quiet
export HOLDFAST_STORE="$DATABASE_URL" HOLDFAST_FENCE="$DATABASE_URL"
# A run that was killed leaves knex's own lock behind. Under the lock of Holdfast nobody else can have it.
exec holdfast run migrate/app --wait 5m -- \
  sh -c 'node_modules/.bin/knex migrate:unlock && node_modules/.bin/knex migrate:latest'
