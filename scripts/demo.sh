#!/usr/bin/env bash
# Shows what Holdfast is for: two processes want one lock, one of them gets it, and the other learns who was first.
# usage: scripts/demo.sh PATH_TO_HOLDFAST
set -euo pipefail

holdfast=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Nothing of the user's own settings, and nothing that outlives the show.
unset "${!HOLDFAST_@}"
export HOLDFAST_STORE="sqlite:$work/locks.db"
export XDG_CONFIG_HOME="$work" XDG_STATE_HOME="$work"

say() { printf '\n# %s\n' "$*"; }
show() {
  printf '$'
  printf ' %s' "$@"
  printf '\n'
}

# One deployment: takes the lock and leaves its grant, its complaint and its exit status in files.
deploy() {
  local who=$1 status=0
  "$holdfast" acquire deploy/prod --ttl 30s --holder "$who" --reason "release 41, started by $who" \
    --format sh >"$who.grant" 2>"$who.complaint" || status=$?
  echo "$status" >"$who.status"
}

say "Two deployments start at the same moment, as two processes on one store:"
show holdfast acquire deploy/prod --ttl 30s --holder alice --reason '"release 41, started by alice"' '&'
show holdfast acquire deploy/prod --ttl 30s --holder bob --reason '"release 41, started by bob"' '&'
deploy alice &
alice_pid=$!
deploy bob &
bob_pid=$!
wait "$alice_pid" "$bob_pid"

winner=alice loser=bob
[[ $(<alice.status) == 0 ]] || { winner=bob loser=alice; }
if [[ $(<"$winner.status") != 0 || $(<"$loser.status") != 75 ]]; then
  echo "demo.sh: exactly one of them should have got the lock:" >&2
  head alice.* bob.* >&2
  exit 1
fi

say "$winner got it (exit status 0). $loser was refused (exit status 75) and told who holds it, and why:"
cat "$loser.complaint"

say "Anybody can look, without changing anything:"
show holdfast status deploy/prod
"$holdfast" status deploy/prod

say "$winner gives it back, and $loser has its turn with a higher fencing token:"
# The grant is what a script would pass to eval: HOLDFAST_LEASE, HOLDFAST_TOKEN, HOLDFAST_LOCK.
show holdfast release deploy/prod
(eval "$(<"$winner.grant")" && "$holdfast" release deploy/prod)
show holdfast acquire deploy/prod --ttl 30s --holder "$loser"
deploy "$loser"
[[ $(<"$loser.status") == 0 ]] || { cat "$loser.complaint" >&2 && exit 1; }
first_token=$(eval "$(<"$winner.grant")" && echo "$HOLDFAST_TOKEN")
second_token=$(eval "$(<"$loser.grant")" && echo "$HOLDFAST_TOKEN")
echo "token of $winner: $first_token"
echo "token of $loser: $second_token"
[[ $second_token -gt $first_token ]] || { echo "demo.sh: the token did not rise" >&2 && exit 1; }

say "Every change is in the audit log, chained by hashes:"
show holdfast history deploy/prod
"$holdfast" history deploy/prod
show holdfast history deploy/prod --verify
"$holdfast" history deploy/prod --verify
