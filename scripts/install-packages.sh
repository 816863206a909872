#!/usr/bin/env bash
# Installs the Debian packages of the groups that are named, and only those that are missing.
# usage: scripts/install-packages.sh build|test|lint|bench|peers|matrix|model|deb|container|fuzz...
set -euo pipefail

packages_of() {
  case $1 in
    build) echo g++ cmake ninja-build ccache pkg-config libfmt-dev libtomlplusplus-dev libyaml-cpp-dev libboost1.81-dev libsqlite3-dev libpq-dev libmariadb-dev libhiredis-dev libcurl4-openssl-dev libnghttp2-dev libssl-dev esbuild ;;
    test) echo curl libgtest-dev libgmock-dev librapidcheck-dev strace faketime postgresql-15 mariadb-server-core mariadb-client-core redis-server etcd-server pgbouncer sqlite3 zsh nginx-light prometheus alembic python3-psycopg2 chromium fonts-liberation "$(command -v npm >/dev/null || echo nodejs npm)" ;;
    lint) echo clang-format-19 clang-tidy-19 shellcheck ;;
    bench) echo libbenchmark-dev valgrind sqlite3 postgresql-15 mariadb-server-core mariadb-client-core redis-server redis-tools etcd-server ;;
    # A machine may have Node.js from somewhere else, with an npm that is no package.
    peers) echo golang-go golang-etcd-server-dev python3-redis "$(command -v npm >/dev/null || echo nodejs npm)" ;;
    matrix) command -v npm >/dev/null || echo nodejs npm ;;
    model) echo spin gcc ;;
    deb) echo debhelper dpkg-dev fakeroot lintian mmdebstrap mariadb-client-core ;;
    container) echo buildah mmdebstrap ;;
    fuzz) echo clang-19 libclang-rt-19-dev ;;
    *)
      echo "install-packages.sh: there is no group \"$1\"; the groups are build, test, lint, bench, peers, matrix, model, deb, container and fuzz" >&2
      exit 64
      ;;
  esac
}

wanted=()
for group in "$@"; do
  names=$(packages_of "$group")
  read -ra names <<<"$names"
  wanted+=("${names[@]}")
done

# dpkg-query fails when it has never heard of one of them, and still tells about the others.
installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
missing=()
for package in "${wanted[@]}"; do
  grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "install-packages.sh: this is not a Debian system; please install the counterparts of: ${missing[*]}" >&2
  exit 69
fi
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install-packages.sh: please run this as root, once: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 77
  fi
  as_root=(sudo)
fi

echo "installing ${missing[*]}"
# A machine that is being set up may still hold apt's lock for a moment.
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@" </dev/null
}
apt update
apt install --no-install-recommends "${missing[@]}" >/dev/null
