#!/usr/bin/env bash
# Builds the Debian packages into build/deb, and tries them.
# usage: scripts/deb.sh build|lint|try|root...
#   build  the packages of the working tree, with Debian's flags
#   lint   what lintian says of them
#   try    in a root folder with nothing but them: the README's first lock; the daemon; every store, by the command and by
#          the examples of the library, built by CMake and by pkg-config. Needs root, the network, and build/bin/keeper.
#   root   build/deb/holdfast-root.tar, what packaging/container/Containerfile makes an image of. Needs root and the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

deb=$PWD/build/deb
version=$(sed -nE 's/^#define HOLDFAST_VERSION_(MAJOR|MINOR|PATCH) //p' include/holdfast/version.hpp | paste -sd .)

build() {
  local source=$deb/holdfast-$version
  rm -rf "$deb"/holdfast* "$deb"/libholdfast*
  mkdir -p "$source"
  git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$source"
  cp -r packaging/debian "$source/debian"
  cp contrib/systemd/holdfast.socket "$source/debian/holdfast-server.holdfast.socket"
  cp contrib/systemd/holdfast.sysusers "$source/debian/holdfast-server.sysusers"
  sed 's|ExecStart=holdfast|ExecStart=/usr/bin/holdfast|' \
    contrib/systemd/holdfast.service >"$source/debian/holdfast-server.holdfast.service"
  printf 'holdfast (%s-1) unstable; urgency=medium\n\n  * Built from %s.\n\n -- %s  %s\n' "$version" \
    "$(git rev-parse HEAD)" "$(sed -n 's/^Maintainer: //p' packaging/debian/control)" "$(git log -1 --format=%cD)" \
    >"$source/debian/changelog"
  if ! (cd "$source" && PATH=/usr/lib/ccache:$PATH CCACHE_BASEDIR=$source dpkg-buildpackage --no-sign --build=binary) >"$deb/build.log" 2>&1; then
    tail -n 60 "$deb/build.log" >&2
    echo "deb.sh: the whole log is $deb/build.log" >&2
    return 1
  fi
  ls "$deb"/*.deb
}

lint() {
  # Nobody has asked Debian to take the package.
  lintian --fail-on=error,warning --suppress-tags=initial-upload-closes-no-bugs,bogus-mail-host,bogus-mail-host-in-debian-changelog \
    "$deb/holdfast_${version}-1_$(dpkg --print-architecture).changes"
}

# in_root COMMAND: by bash, in the clean root.
in_root() {
  chroot "$deb/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    bash -euo pipefail -c "$1"
}

install_in_root() { in_root "cd /packages && apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends $*" >/dev/null; }

# The servers of the stores, as the tests start them. Their URLs are in `urls`.
start_servers() {
  local folder=$deb/servers password=canary-7f3a91 name=deb_$$
  build/bin/keeper start "$folder"
  # shellcheck disable=SC2064 # The folder of now.
  trap "$PWD/build/bin/keeper stop '$folder'; umount '$deb/root/proc'" EXIT
  MYSQL_PWD=$password mariadb --host=127.0.0.1 --port="$(cat "$folder/mysql")" --user=holdfast --execute="CREATE DATABASE $name"
  urls=("memory:" "file:/tmp/locks" "sqlite:/tmp/locks.db"
    "postgres://holdfast:$password@127.0.0.1:$(cat "$folder/postgres")/postgres?schema=$name"
    "mysql://holdfast:$password@127.0.0.1:$(cat "$folder/mysql")/$name"
    "redis://:$password@127.0.0.1:$(cat "$folder/redis")/0?prefix=$name"
    "etcd://127.0.0.1:$(cat "$folder/etcd")/$name")
}

# A root folder with nothing but a minimal Debian, and the packages beside it.
fresh_root() {
  local root=$deb/root
  [[ -f $deb/base.tar ]] || mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$deb/base.tar"
  rm -rf "$root"
  mkdir "$root"
  tar --extract --file="$deb/base.tar" --directory="$root"
  mount --types proc proc "$root/proc"
  trap 'umount "$deb/root/proc"' EXIT
  mkdir "$root/packages"
  cp "$deb"/*.deb "$root/packages"
  in_root "apt-get -qq update"
}

root() {
  fresh_root
  install_in_root "./holdfast_*.deb ./holdfast-{postgres,mysql,redis,etcd,http,server}_*.deb"
  in_root "install -d -o holdfast -g holdfast -m 0700 /var/lib/holdfast
    rm -rf /packages /var/lib/apt/lists/* /var/cache/apt/*"
  umount "$deb/root/proc"
  trap - EXIT
  tar --create --file="$deb/holdfast-root.tar" --directory="$deb/root" .
}

# with_daemon COMMANDS: by bash, in the clean root, with a daemon on a new store; its URL is in $url.
# shellcheck disable=SC2016 # The root's shell expands them.
with_daemon() {
  in_root 'cd /tmp && rm -f port
    holdfast serve --store file:/tmp/served --listen 127.0.0.1:0 --port-file port >serve.log 2>&1 &
    trap "kill %1" EXIT
    for ((i = 0; i < 600; ++i)); do [[ -s port ]] && break; sleep 0.1; done
    url=http://127.0.0.1:$(cat port)
    '"$1"'
    trap - EXIT
    kill %1
    wait %1'
}

# shellcheck disable=SC2016 # The root's shell expands them.
try() {
  local url
  fresh_root

  install_in_root "./holdfast_*.deb"
  in_root 'lease=$(holdfast acquire migrate/prod --ttl 10m --operation "migrate up" -m "release 42" --format sh)
    if holdfast acquire migrate/prod 2>/tmp/refused; then exit 1; else [[ $? == 75 ]]; fi
    grep -q "is held by" /tmp/refused
    eval "$lease"
    holdfast release "$HOLDFAST_LOCK"
    holdfast run nightly/backup -- true
    if holdfast status --store redis://127.0.0.1:1 2>/tmp/refused; then exit 1; fi
    grep -q "holdfast-store-redis.so is not installed" /tmp/refused'
  echo "deb.sh: the command takes locks in a root without compiler"

  start_servers
  install_in_root "./holdfast-{postgres,mysql,redis,etcd,http,server}_*.deb"
  for url in "${urls[@]:1}"; do in_root "HOLDFAST_STORE='$url' holdfast run a/lock -- true"; done
  in_root 'getent passwd holdfast >/dev/null
    test -f /lib/systemd/system/holdfast.service -o -f /usr/lib/systemd/system/holdfast.service'
  with_daemon 'HOLDFAST_STORE=$url holdfast run a/lock -- true'
  echo "deb.sh: the command reaches every store, and the daemon serves"

  install_in_root "./libholdfast-dev_*.deb g++ cmake ninja-build pkg-config libpq-dev libmariadb-dev libhiredis-dev \
    libcurl4-openssl-dev libnghttp2-dev libssl-dev"
  in_root 'mkdir /tmp/example && cd /tmp/example
    cp /usr/share/doc/libholdfast-dev/examples/*.cpp .
    cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES CXX)
find_package(holdfast REQUIRED COMPONENTS postgres mysql redis etcd http)
foreach(name acquire hold)
  add_executable(\${name} \${name}.cpp)
  target_link_libraries(\${name} PRIVATE holdfast::holdfast)
endforeach()
add_executable(linked acquire.cpp)
target_link_libraries(linked PRIVATE holdfast::postgres holdfast::mysql holdfast::redis holdfast::etcd holdfast::http)
END
    cmake -G Ninja -S . -B build >/dev/null
    cmake --build build >/dev/null
    build/hold >/dev/null
    g++ -std=c++23 acquire.cpp -o by_pkgconfig $(pkg-config --cflags --libs holdfast)'
  for url in "${urls[@]}"; do
    in_root "cd /tmp/example && for program in build/acquire build/linked ./by_pkgconfig; do \$program '$url' >/dev/null; done"
  done
  with_daemon 'for program in build/acquire build/linked ./by_pkgconfig; do (cd example && $program "$url" >/dev/null); done'
  echo "deb.sh: the examples of the library run on every store"
}

for step in "$@"; do
  case $step in
    build | lint | try | root) "$step" ;;
    *)
      echo "deb.sh: there is no step \"$step\"" >&2
      exit 64
      ;;
  esac
done
