#!/usr/bin/env bash
# Makes the peers that are no C++ ready in a folder: scripts, a Go program, and what they need of npm.
# usage: scripts/build-peers.sh FOLDER
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$1"
cd "$1"

cp "$root"/bench/peers/{redis_py_lock.py,node_redlock.js,package.json} .
# Without a lock file: it would name the registry that this machine happens to use.
npm install --no-package-lock --no-audit --no-fund --loglevel=error
# Debian has the sources of etcd's client in the old layout, without modules.
GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$PWD/go-cache go build -o etcd_mutex "$root/bench/peers/etcd_mutex.go"
