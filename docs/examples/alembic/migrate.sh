#!/bin/sh
# Every instance of the application may call this at its start. DATABASE_URL is a postgresql:// URL.
set -eu
holdfast init --fence --database "$DATABASE_URL" --quiet
export HOLDFAST_STORE="$DATABASE_URL" HOLDFAST_FENCE="$DATABASE_URL"
exec holdfast run migrate/app --wait 5m -- alembic upgrade head
