#!/usr/bin/env bash
# Starts a daemon and the sample application beside it, tells where they are, and ends both on Ctrl-C or SIGTERM.
# usage: examples/cockpit/start.sh FOLDER [POLICIES [OPTION OF cockpit]...]
#
# FOLDER keeps locks, dashboards and tokens, and is made if it is not there. When both serve, their ports are in
# FOLDER/daemon.port and FOLDER/cockpit.port, their process numbers in daemon.pid and cockpit.pid, and how to start them
# again at the same ports in daemon.cmd and cockpit.cmd.
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
build=$here/../../build
holdfast=$(realpath "${HOLDFAST_BIN:-$build/bin/holdfast}")
cockpit=$(realpath "${COCKPIT_BIN:-$build/bin/cockpit}")
web=$(realpath -m "${COCKPIT_WEB:-$build/examples/cockpit/web/dist}")

umask 077
mkdir -p "$1/tokens"
folder=$(realpath "$1")
policies=$(realpath "${2:-$here/holdfast.toml}")
shift $(($# < 2 ? $# : 2))
rm -f "$folder"/{daemon,cockpit}.{port,pid,cmd}

# Nothing of the user's own settings.
unset "${!HOLDFAST_@}"

while read -r user grant; do
  [[ ! -s $folder/tokens/$user.token ]] || continue
  "$holdfast" token create "$user" --token-file "$folder/tokens.json" --grant "$grant" -q >"$folder/tokens/$user.token"
done <<'USERS'
ana holder:project
ben holder:project
olga admin:project
vera viewer:project
USERS

# Only what this has started and what still runs: the number of a process that has ended may be another's by now.
end_all() {
  trap - EXIT INT TERM
  local running
  running=$(jobs -pr)
  # shellcheck disable=SC2086 # Numbers.
  [[ -z $running ]] || kill $running 2>/dev/null || true
  wait
}
trap end_all EXIT
trap 'exit 0' INT TERM

# Writes NAME.cmd and starts it; false if it ended instead of listening, because somebody else has the port.
start() {
  local name=$1
  shift
  printf 'exec %s\n' "${*@Q}" >"$folder/$name.cmd"
  bash "$folder/$name.cmd" >>"$folder/$name.log" 2>&1 &
  local pid=$!
  echo "$pid" >"$folder/$name.pid"
  while [[ ! -s $folder/$name.port ]]; do
    kill -0 "$pid" 2>/dev/null || return 1
    sleep 0.05
  done
}

# Below the ports that a system gives to anybody, so that a restart finds its port free.
start_on_free_port() {
  local name=$1 flag=$2 prefix=$3
  shift 3
  for _ in {1..10}; do
    start "$name" "$@" "$flag" "$prefix$((20000 + RANDOM % 10000))" && return
  done
  echo "start.sh: $name does not start:" >&2
  tail -n 5 "$folder/$name.log" >&2
  return 1
}

start_on_free_port daemon --listen 127.0.0.1: \
  "$holdfast" serve --config "$policies" --store "sqlite:$folder/locks.db" --token-file "$folder/tokens.json" \
  --port-file "$folder/daemon.port"
start_on_free_port cockpit --port "" \
  "$cockpit" --daemon "$(<"$folder/daemon.port")" --database "$folder/cockpit.db" --tokens "$folder/tokens" --web "$web" \
  --port-file "$folder/cockpit.port" "$@"

echo "sample application: http://127.0.0.1:$(<"$folder/cockpit.port")"
echo "console:            http://127.0.0.1:$(<"$folder/daemon.port") (sign in with the token in $folder/tokens/olga.token)"
echo "Ctrl-C ends both."
# Not for the two: whoever restarts one of them must not end this.
sleep infinity &
wait $!
