#!/usr/bin/env bash
# `weft dissect --check` names no violation in captures of healthy traffic: those given, and what `weft --trace` writes of
# Weft's own ends with each option that changes the wire.
set -euo pipefail
weft=$1
shift
scratch=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT

num=0
quiet() {
  local out
  out=$("$weft" dissect --check "$1") || { printf 'FAILED: %s\n%s\n' "$1" "$(head -n 5 <<<"$out")" >&2; exit 1; }
  # A capture in which nothing is found would be quiet, too.
  grep -qE '^0 violations in [1-9][0-9]* MPA frames?' <<<"$out" || { echo "FAILED: $1: $out" >&2; exit 1; }
  num=$((num + 1))
}

for capture; do quiet "$capture"; done

mkdir -p "$scratch/tree/d"
for i in 1 2 3 4 5; do head -c $((i * 3001)) /dev/urandom >"$scratch/tree/d/f$i"; done
head -c 200001 /dev/urandom >"$scratch/tree/large"
# traced OPTIONS...: a server and a client with the same options; the client's trace.
traced() {
  local name rdma mount
  name=$(tr -c 'a-z0-9\n' - <<<"$*")
  : >"$scratch/serve.out"  # the address of the server before is no longer there to be read
  "$weft" serve "$scratch/tree" --read-write --listen 127.0.0.1:0 --mount-listen 127.0.0.1:0 \
    --state-dir "$scratch/state" "$@" >"$scratch/serve.out" 2>"$scratch/serve.err" &
  server=$!
  until grep -q '^ready ' "$scratch/serve.out"; do
    kill -0 "$server" || { cat "$scratch/serve.err" >&2; exit 1; }
    sleep 0.05
  done
  rdma=$(sed -nE 's/^ready .*rdma=[^ ]*:([0-9]+).*/\1/p' "$scratch/serve.out")
  mount=$(sed -nE 's/^ready .*mount=[^ ]*:([0-9]+).*/\1/p' "$scratch/serve.out")
  url() { echo "nfs+rdma://127.0.0.1:$rdma$1?mountport=$mount"; }
  rm -rf "$scratch/copy"
  "$weft" --trace "$scratch/get$name.pcapng" nfs get -r "$(url /)" "$scratch/copy" "$@" >/dev/null 2>"$scratch/get.err" ||
    { cat "$scratch/get.err" >&2; exit 1; }
  "$weft" --trace "$scratch/put$name.pcapng" nfs put "$scratch/tree/large" "$(url /d/new)" "$@" >/dev/null 2>"$scratch/put.err" ||
    { cat "$scratch/put.err" >&2; exit 1; }
  kill "$server"
  wait "$server" || true
  server=
  quiet "$scratch/get$name.pcapng"
  quiet "$scratch/put$name.pcapng"
}
traced
traced --markers
traced --crc off
traced --markers --crc off
traced --mpa-rev 1
traced --mpa-rev 0
traced --rtr send
traced --rtr write
traced --rtr read
traced --fpdu 140
traced --placement direct
for version in 1 2-cel05 2-wg07 auto; do traced --rpcrdma "$version"; done
echo "$num captures without a violation"
