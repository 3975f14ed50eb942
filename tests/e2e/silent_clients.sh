#!/usr/bin/env bash
# 10,000 clients that connect and say nothing do not keep the server from serving others, while they come and after.
source "$(dirname "$0")/common.sh"
hold=$2

mkdir "$scratch/tree"
head -c 200000 /dev/urandom >"$scratch/tree/file"
serve "$scratch/tree"

fetch() {
  "$weft" nfs get "$(url /file)" "$scratch/copy" || fail "$1: the file could not be read"
  cmp "$scratch/tree/file" "$scratch/copy" || fail "$1: the file is not the same"
  rm "$scratch/copy"
}

fetch "before"
mkfifo "$scratch/stop"
"$hold" "$rdma_port" 10000 <"$scratch/stop" >"$scratch/hold.out" &
pids+=("$!")
exec 9>"$scratch/stop"
for i in 1 2 3; do fetch "while they connect, $i"; done
wait_for "$scratch/hold.out" '^holding '
held=$(sed -n 's/^holding //p' "$scratch/hold.out")
[ "$held" -ge 9900 ] || fail "only $held connections could be opened: raise the limit of open files"
for i in 1 2 3; do fetch "while they are held, $i"; done
exec 9>&-
kill -0 "$server_pid" || fail "the server is gone"
echo "$held silent clients; every file was served"
