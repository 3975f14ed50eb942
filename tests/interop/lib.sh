# Sourced by every case, as `source "$(dirname "$0")/../lib.sh"`. scripts/interop calls a case with the path of `weft` and
# an empty folder for its run. Errors go to stderr, and the folder has the logs of both sides and the capture of the guest's
# network.
set -euo pipefail
weft=$1 run=$2
interop=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
pids=()
guest_pid=

cleanup() {
  trap '' EXIT INT TERM
  local pid
  for pid in ${pids[@]+"${pids[@]}"} $guest_pid; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# amount FULL SHORT: how much of something a case does; `scripts/interop --short` asks for less.
amount() { [ -n "${WEFT_SHORT:-}" ] && echo "$2" || echo "$1"; }

# start NAME ARGUMENT...: runs `weft ARGUMENT...` until the case ends and waits for its `ready` line. Its output is in
# $run/NAME.out and $run/NAME.err. Sets $started to its process.
start() {
  local name=$1 i
  shift
  "$weft" "$@" >"$run/$name.out" 2>"$run/$name.err" &
  started=$!
  pids+=("$started")
  for ((i = 0; i < 400; ++i)); do
    grep -q '^ready ' "$run/$name.out" && return 0
    kill -0 "$started" 2>/dev/null || break
    sleep 0.05
  done
  fail "weft $*: $(tail -n 3 "$run/$name.err")"
}
# port NAME KEY: the port that NAME printed as KEY=ADDR:PORT when it was ready.
port() { sed -nE "s/^ready .*\b$2=[^ ]*:([0-9]+)\b.*/\1/p" "$run/$1.out"; }

# stop PID NAME: a `weft` that was started ends well: by the signal, after it has cleaned up.
stop() {
  local status=0
  kill -INT "$1"
  wait "$1" || status=$?
  [ "$status" = 130 ] || fail "$2 ended with $status: $(tail -n 3 "$run/$2.err")"
}

# free_ports N: N unused ports of loopback.
free_ports() {
  python3 -c '
import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in held))' "$1"
}

# guest [HOSTPORT:GUESTPORT...] <<SCRIPT: boots a guest that runs SCRIPT (lab/guest.sh has its vocabulary), beside this one.
guest() {
  cat >"$run/script"
  "$interop/lab/boot" "$run/script" "$run" "$@" 2>"$run/boot.err" &
  guest_pid=$!
}
# guest_done: waits for the end of the guest's script, which has to be a good one.
guest_done() {
  local status=0 pid=$guest_pid
  wait "$pid" || status=$?
  guest_pid=
  [ "$status" = 0 ] && return 0
  cat "$run/boot.err" >&2
  tail -n 30 "$run/share/out" >&2 2>/dev/null || true
  fail "the guest's script ended with $status"
}
# await NAME [SECONDS]: waits until the guest told NAME (`tell`), and prints its value. tell NAME [VALUE]: the other way.
await() {
  local i
  for ((i = 0; i < 10 * ${2:-240}; ++i)); do
    if [ -e "$run/share/$1" ]; then
      cat "$run/share/$1"
      return 0
    fi
    kill -0 "$guest_pid" 2>/dev/null || break
    sleep 0.1
  done
  cat "$run/boot.err" >&2
  tail -n 30 "$run/share/out" >&2 2>/dev/null || true
  fail "the guest never told '$1'"
}
tell() {
  echo "${2:-}" >"$run/share/$1.new"
  mv "$run/share/$1.new" "$run/share/$1"
}
# guest_said PATTERN: a line of the guest's script matches PATTERN.
guest_said() { grep -qE -- "$1" "$run/share/out" || { tail -n 30 "$run/share/out" >&2; fail "the guest did not say '$1'"; }; }
# ibv_suite siw|rxe N: runs the suite of the verbs API in a guest over that software device. N tests at least have to run and
# pass. Skipped tests are listed with their reason. It takes most of five minutes on a slow machine.
ibv_suite() {
  local passed
  LAB_TIMEOUT=900 LAB_PROGRAMS=${weft%/apps/weft}/verbs-shim/ibv/verbs_ibv_test guest <<SCRIPT
$1_up
export WEFT_IBV_DEVICE=${1}0 WEFT_IBV_ADDRESS=\$guest_ip WEFT_IBV_NOBODY=10.0.2.77
ours verbs_ibv_test --gtest_brief=0 || fail "the suite"
SCRIPT
  guest_done
  sed -n '/^\[  PASSED  \]/p; /^\[  SKIPPED \] [0-9]/p' "$run/share/out"
  # gtest prints a skip's reason behind its place.
  sed -n '/: Skipped$/{n;p;}' "$run/share/out" | sort | uniq -c
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests*\..*/\1/p' "$run/share/out")
  [ "${passed:-0}" -ge "$2" ] || fail "only ${passed:-0} tests of the suite ran and passed"
}
