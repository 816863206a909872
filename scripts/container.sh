#!/usr/bin/env bash
# Builds the images of the container files with buildah, and tries them. Needs root, and neither a running engine nor a
# registry: the image that contrib's file begins with is made by mmdebstrap. Nothing is left behind.
# usage: scripts/container.sh packages|sources...
#   packages  packaging/container/Containerfile, of the root folder that `scripts/deb.sh root` has made
#   sources   contrib/container/Containerfile. What the build folder has to install takes the place of its first stage, which
#             compiles the same in the image. Needs Debian's packages from the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
engine() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
clean_up() {
  engine rm --all >/dev/null
  rm -rf "$work"
}
trap clean_up EXIT

# build_image NAME FILE FOLDER OPTION...
build_image() {
  local name=$1 file=$2 folder=$3
  shift 3
  if ! engine bud --isolation chroot --pull-never --file "$file" --tag "$name" "$@" "$folder" >"$work/log" 2>&1; then
    cat "$work/log" >&2
    return 1
  fi
}

# Inside: who runs it and where; a lock; the daemon until it is asked to stop; and whether every store finds its libraries.
# shellcheck disable=SC2016 # The image's shell expands them.
in_image='
  [[ $(id -un) == holdfast && $PWD == /var/lib/holdfast ]]
  holdfast run nightly/backup -- true
  [[ -f holdfast.db ]]
  holdfast serve --listen 127.0.0.1:0 --port-file port >log 2>&1 &
  while [[ ! -s port ]] && kill -0 $!; do sleep 0.1; done
  holdfast status nightly/backup --store "http://127.0.0.1:$(cat port)"
  kill $!
  wait $! || { cat log; exit 1; }
  for url in postgres://a@127.0.0.1:1/a mysql://a@127.0.0.1:1/a redis://127.0.0.1:1 etcd://127.0.0.1:1 http://127.0.0.1:1; do
    status=0
    holdfast status --store "$url" 2>refusal || status=$?
    # Nobody is there: whoever says so has been loaded.
    if [[ $status != 69 ]] || grep -q "cannot be loaded" refusal; then cat refusal; exit 1; fi
  done'

try_image() {
  local container
  container=$(engine from --pull-never "localhost/$1")
  [[ $(engine inspect --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' "$container") == "[holdfast] [serve]" ]]
  engine run --isolation chroot "$container" -- bash -euo pipefail -c "$in_image" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    return 1
  }
  echo "container.sh: the image of $2 builds and works"
}

packages() {
  if [[ ! -f build/deb/holdfast-root.tar ]]; then
    echo "container.sh: build/deb/holdfast-root.tar is not there; make deb and scripts/deb.sh root make it" >&2
    return 69
  fi
  build_image holdfast-packages packaging/container/Containerfile build/deb
  try_image holdfast-packages packaging/container/Containerfile
}

sources() {
  mkdir -p "$work/base" "$work/build/out"
  mmdebstrap --quiet --variant=minbase bookworm "$work/base/base.tar"
  printf 'FROM scratch\nADD base.tar /\n' >"$work/base/Containerfile"
  build_image docker.io/library/debian:12-slim "$work/base/Containerfile" "$work/base"
  DESTDIR=$work/build/out cmake --install build --strip >/dev/null
  # Nothing of the folder is copied into the second stage.
  build_image holdfast-sources contrib/container/Containerfile packaging --build-context "build=$work/build"
  try_image holdfast-sources contrib/container/Containerfile
}

for part in "$@"; do "$part"; done
