# Sourced by the scripts beside it: a scratch folder that goes away, a server that is stopped, and ways to fail.

set -euo pipefail
weft=$1
scratch=$(mktemp -d)
pids=()

cleanup() {
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# need TOOL: without it the test is skipped, or fails where skipping is not accepted.
need() {
  command -v "$1" >/dev/null && return 0
  [ -n "${WEFT_SKIP_IS_FAILURE:-}" ] && fail "$1 is not installed"
  echo "skipped: $1 is not installed"
  exit 77
}

# wait_for FILE PATTERN: until a line of FILE matches, which a program that was just started prints; 20 s at most.
wait_for() {
  local i
  for ((i = 0; i < 400; ++i)); do
    grep -qE "$2" "$1" 2>/dev/null && return 0
    sleep 0.05
  done
  cat "$1" >&2
  fail "no line matches '$2' in $1"
}

# serve DIR [option...]: starts `weft serve`, sets $rdma_port and $mount_port and $server_pid.
serve() {
  local dir=$1
  shift
  "$weft" serve "$dir" --listen 127.0.0.1:0 --mount-listen 127.0.0.1:0 --state-dir "$scratch/state" "$@" \
    >"$scratch/serve.out" 2>"$scratch/serve.err" &
  server_pid=$!
  pids+=("$server_pid")
  wait_for "$scratch/serve.out" '^ready '
  rdma_port=$(sed -nE 's/^ready rdma=[^ ]*:([0-9]+) .*/\1/p' "$scratch/serve.out")
  mount_port=$(sed -nE 's/^ready .*mount=[^ ]*:([0-9]+).*/\1/p' "$scratch/serve.out")
}

# url PATH: the name of PATH on the server started by serve.
url() { printf 'nfs+rdma://127.0.0.1:%s%s?mountport=%s' "$rdma_port" "$1" "$mount_port"; }
