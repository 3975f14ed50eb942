# Sourced by ratios, crc32c, rpc-ratios, instructions and trace-cost: listeners that end with the script, numbers of interleaved
# rounds in $work/NAME, one a line, and the lines that show them. They set $script and $build first.
weft=$build/apps/weft

# need PROGRAM...: ends the script where one was not built.
need() {
  local program
  for program in "$@"; do
    [ -x "$program" ] || { echo "$script: $program is missing; build it: cmake --preset release && cmake --build --preset release" >&2; exit 1; }
  done
}

# The files live in memory where that is to be had, so that no disk is measured.
work=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/weft-$script-XXXXXX")
pids=()
cleanup() {
  [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

# start NAME COMMAND...: runs a listener and waits for its ready line, which is left in $ready.
start() {
  local name=$1
  shift
  "$@" > "$work/$name.out" 2> "$work/$name.err" &
  pids+=($!)
  for _ in $(seq 100); do
    ready=$(grep -m1 '^ready' "$work/$name.out" 2>/dev/null || true)
    [ -z "$ready" ] || return 0
    kill -0 $! 2>/dev/null || break
    sleep 0.1
  done
  echo "$script: $name did not start:" >&2
  cat "$work/$name.err" >&2
  exit 1
}
field() { sed -n "s/.*$1=\([^ ]*\).*/\1/p" <<< "$ready"; }

# key KEY: one number out of a line of JSON.
key() { sed -n "s/.*\"$1\": *\([0-9.e+]*\).*/\1/p"; }
larger() { sort -g | tail -n 1; }

median() { sort -g "$work/$1" | awk '{v[NR]=$1} END {print NR % 2 ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }
# The ratio is the median of the rounds' own ratios: what drifts, drifts for both of a round.
paired() { paste "$work/$1" "$work/$2" | awk '{printf "%.4f\n", $1/$2}' | sort -g | awk '{v[NR]=$1} END {print NR % 2 ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }
gb() { awk -v v="$(median "$1")" 'BEGIN {printf "%.2f GB/s", v/1e9}'; }
us() { awk -v v="$(median "$1")" 'BEGIN {printf "%.2f us", v/1e3}'; }
per_s() { awk -v v="$(median "$1")" 'BEGIN {printf "%.3f M/s", v/1e6}'; }
row() { printf '%-52s %14s %14s %8.2f  %s\n' "$1" "$2" "$3" "$4" "$5"; }
