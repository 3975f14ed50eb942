#!/usr/bin/env bash
# tshark, an independent program, reads the captures that --trace writes: the checksums and sequence numbers of TCP are
# right, nothing is malformed, timestamps have nanoseconds, and the comments tell what Weft knows. Over IPv4 and IPv6, at
# both ends, and of a program that Ctrl-C ended.
source "$(dirname "$0")/common.sh"
need tshark

checked=(-o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE)

# listen ADDRESS: a `weft perf` that listens and traces; sets $address.
listen() {
  "$weft" perf --listen "$1" --trace "$scratch/listener.pcapng" >"$scratch/listener.out" 2>"$scratch/listener.err" &
  listener=$!
  pids+=("$listener")
  wait_for "$scratch/listener.out" '^ready '
  address=$(sed -nE 's/^ready rdma=([^ ]*).*/\1/p' "$scratch/listener.out")
}

# judge FILE COMMENT...: no trouble in the file, and each comment stands on some packet. tshark 4.0 takes a Send without
# payload (a ULPDU of 18 bytes) for malformed.
judge() {
  local file=$1 comment bad packets
  shift
  bad=$(tshark -r "$file" "${checked[@]}" \
    -Y '_ws.malformed && !(iwarp_mpa.ulpdulength == 18) || tcp.analysis.flags || tcp.checksum.status == 0 || ip.checksum.status == 0' 2>"$scratch/tshark.err")
  [ ! -s "$scratch/tshark.err" ] || grep -q '^Running as user' "$scratch/tshark.err" || fail "$file: $(cat "$scratch/tshark.err")"
  [ -z "$bad" ] || { head -5 <<<"$bad" >&2; fail "$file: tshark sees trouble"; }
  [ -n "$(tshark -r "$file" "${checked[@]}" -Y 'tcp.checksum.status == 1' -c 100 2>/dev/null)" ] ||
    fail "$file: tshark verified no checksum"
  tshark -r "$file" -T fields -e frame.time_epoch 2>/dev/null | grep -E '\.[0-9]{6}[0-9]*[1-9]' >"$scratch/times" ||
    fail "$file: no time has nanoseconds"
  tshark -r "$file" -T fields -e frame.comment 2>/dev/null | grep . | sort -u >"$scratch/comments" || true
  for comment in "$@"; do
    grep -q "$comment" "$scratch/comments" || { cat "$scratch/comments" >&2; fail "$file: no comment has '$comment'"; }
  done
  packets=$(tshark -r "$file" 2>/dev/null | wc -l)
  echo "$file: $packets packets, $(wc -l <"$scratch/comments") different comments"
}

for ip in 127.0.0.1 '[::1]'; do
  listen "$ip:0"
  for op in send write read rpc-read; do
    "$weft" perf "$address" --op "$op" --size 65536 --depth 2 --seconds 0.05 --trace "$scratch/client-$op.pcapng" >/dev/null 2>&1 ||
      fail "perf --op $op over $ip"
  done
  kill -INT "$listener"
  wait "$listener" 2>/dev/null || true
  judge "$scratch/listener.pcapng" 'established: MPA revision 2' 'Receive 0x[0-9a-f]* ended: success'
  judge "$scratch/client-send.pcapng" 'Send 0x[0-9a-f]* ended: success'
  judge "$scratch/client-write.pcapng" 'RDMA Write 0x[0-9a-f]* ended: success' 'cut here; --trace-snaplen 0 keeps all'
  judge "$scratch/client-read.pcapng" 'RDMA Read 0x[0-9a-f]* ended: success, 65536 bytes'
  judge "$scratch/client-rpc-read.pcapng" 'Receive 0x[0-9a-f]* ended: success'
done

# A ring takes no more than its files, and each of them can be read alone. It is full, and its first file is written anew,
# when the writer is interrupted.
listen 127.0.0.1:0
"$weft" perf "$address" --op write --size 65536 --depth 2 --seconds 120 --trace "$scratch/ring.pcapng" --trace-limit 128K \
  --trace-ring 2 >"$scratch/ring.out" 2>&1 &
writer=$!
pids+=("$writer")
for ((i = 0; i < 1200; ++i)); do
  [ -e "$scratch/ring_2.pcapng" ] && [ "$scratch/ring_1.pcapng" -nt "$scratch/ring_2.pcapng" ] && break
  sleep 0.05
done
((i < 1200)) || fail "perf did not fill a ring within a minute"
kill -INT "$writer"
wait "$writer" 2>/dev/null || true
for file in "$scratch/ring_1.pcapng" "$scratch/ring_2.pcapng"; do
  [ "$(stat -c %s "$file")" -le 131072 ] || fail "$file is longer than its limit"
  packets=$(tshark -r "$file" -Y tcp 2>/dev/null | wc -l)
  [ "$packets" -gt 0 ] || fail "$file: tshark sees no packet"
  echo "$file: $packets packets"
done
[ ! -e "$scratch/ring.pcapng" ] && [ ! -e "$scratch/ring_3.pcapng" ] || fail "a ring of two has other files"
