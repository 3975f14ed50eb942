#!/usr/bin/env bash
# tshark, an independent program, reads captures of conversations of a few MB: every FPDU's CRC good, no malformed packet,
# and NFS over RPC-over-RDMA over RDMAP, DDP and MPA found in it. A capture with drops proves nothing and fails.
#
# Two conversations, because tshark 4.0 loses an FPDU that begins in the same TCP segment behind a Send which it decodes as
# NFS: with one operation in flight nothing follows a Send of this kind and every layer is decoded at once; with many in flight
# the NFS layer is left out, and all below it is judged.
#
# A sender that moves to another processor lets segments overtake each other, also on lo. tshark puts them in order only
# where it is told to.
source "$(dirname "$0")/common.sh"
need tshark
need dumpcap

in_order=(-o tcp.reassemble_out_of_order:TRUE)

# make_files DIR EXTRA: a large file, a medium and small ones; EXTRA octets beyond a multiple of four in the large ones.
make_files() {
  mkdir -p "$1"
  head -c $((3000000 + $2)) /dev/urandom >"$1/large"
  head -c $((70000 + $2)) /dev/urandom >"$1/medium"
  head -c $((2500000 + $2)) /dev/urandom >"$1.upload"
  for i in $(seq 20); do echo "small file $i" >"$1/small-$i"; done
}
make_files "$scratch/tree/many" 3
# tshark takes the octets that round up an XDR item from the Write chunk, where RFC 8166 section 3.4.6 wants none.
make_files "$scratch/tree/single" 0
serve "$scratch/tree" --read-write

# capture NAME COMMAND...: runs COMMAND under a capture of the server's RDMA port.
capture() {
  local name=$1 file=$scratch/$1.pcapng log=$scratch/$1.dumpcap capture_pid
  shift
  dumpcap -q -i lo -B 128 -s 262144 -f "tcp port $rdma_port" -w "$file" 2>"$log" &
  capture_pid=$!
  pids+=("$capture_pid")
  if ! (wait_for "$log" '^File: ') 2>/dev/null; then
    cat "$log" >&2
    [ -n "${WEFT_SKIP_IS_FAILURE:-}" ] && fail "dumpcap cannot capture on lo"
    echo "skipped: dumpcap cannot capture on lo (no privilege?)"
    exit 77
  fi
  "$@"
  # dumpcap takes the packets of its ring before it ends; a second lets the ring's block be handed over.
  sleep 1
  kill -INT "$capture_pid"
  wait "$capture_pid" || true
  grep -qE "dropped on interface '.*lo.*': [0-9]+/0 " "$log" || {
    cat "$log" >&2
    fail "$name: the capture lost packets"
  }
}

# converse NAME IN_FLIGHT: lists, reads everything, writes a file, and compares.
converse() {
  "$weft" nfs ls -l "$(url "/$1")" >/dev/null
  "$weft" nfs get -r -j "$2" "$(url "/$1")" "$scratch/copy-$1"
  "$weft" nfs put -j "$2" "$scratch/tree/$1.upload" "$(url "/$1/uploaded")"
  cmp "$scratch/tree/$1.upload" "$scratch/tree/$1/uploaded"
  cmp "$scratch/tree/$1/large" "$scratch/copy-$1/large"
  cmp "$scratch/tree/$1/medium" "$scratch/copy-$1/medium"
}

# judge NAME FILTERS [tshark option...]: both passes of tshark over a capture; each filter has to find packets.
judge() {
  local name=$1 filters=$2 decoded=$scratch/$1.decoded bad good fpdus filter
  shift 2
  tshark -2 "${in_order[@]}" -r "$scratch/$name.pcapng" "$@" -V >"$decoded" 2>"$scratch/tshark.err" || fail "$name: tshark: $(cat "$scratch/tshark.err")"
  bad=$(grep -ciE 'malformed|bad crc32|dissector bug' "$decoded" || true)
  if [ "$bad" -ne 0 ]; then
    grep -iE -B8 -m6 'malformed|bad crc32|dissector bug' "$decoded" | cut -c1-160 >&2
    fail "$name: $bad lines of trouble"
  fi
  good=$(grep -c 'CRC check: .*(Good CRC32)' "$decoded" || true)
  fpdus=$(grep -c 'ULPDU length: ' "$decoded" || true)
  [ "$good" -ge 100 ] || fail "$name: only $good good CRCs"
  [ "$good" -eq "$fpdus" ] || fail "$name: $fpdus FPDUs but $good good CRCs"
  while read -r filter; do
    n=$(tshark -2 "${in_order[@]}" -r "$scratch/$name.pcapng" "$@" -Y "$filter" 2>/dev/null | wc -l)
    [ "$n" -gt 0 ] || fail "$name: tshark found no packet for: $filter"
  done <<<"$filters"
  echo "$name: $fpdus FPDUs, every CRC good, nothing malformed"
}

below_nfs='iwarp_mpa.req
iwarp_mpa.rep
iwarp_rdma.opcode == 0
iwarp_rdma.opcode == 1
iwarp_rdma.opcode == 2
iwarp_rdma.opcode == 3
rpcordma.reads_count == 1
rpcordma.writes_count == 1'

capture many converse many 8
judge many "$below_nfs" --disable-protocol nfs
capture single converse single 1
judge single "$below_nfs
nfs.procedure_v3 == 6
nfs.procedure_v3 == 7
nfs.procedure_v3 == 17"
