# The work of the cases with libnfs's programs: NFSv3 and v4 of TCP at 127.0.0.1:$tcp_port, MOUNT at $mount_port. The exported
# folder is /export, to NFSv4 $v4_path where that is something else.

# libnfs_url VERSION PATH
libnfs_url() {
  local export=/export
  [ "$1" != 4 ] || export=${v4_path:-/export}
  printf 'nfs://127.0.0.1%s%s?version=%s&nfsport=%s&mountport=%s' "$export" "$2" "$1" "$tcp_port" "$mount_port"
}
# libnfs PROGRAM ARGUMENT...: its output is in $run/libnfs.out.
libnfs() { timeout 300 "$@" >"$run/libnfs.out" 2>"$run/libnfs.err" || fail "$*: $? $(tail -n 3 "$run/libnfs.err")"; }
# libnfs_work VERSION MIB: small files of many lengths and one of MIB, in and out, and their names and sizes.
libnfs_work() {
  local version=$1 mib=$2 n writer sizes="0 1 2 3 5 1000 1021 2000 4095 4096 4097 65535 65536 300001"
  mkdir -p "$run/small"
  for n in $sizes; do
    # libnfs 4.0.0 writes through NFSv4 no more than fits a buffer of 4 KiB (README.md).
    writer=$version
    [ "$n" -le 2000 ] || writer=3
    head -c "$n" /dev/urandom >"$run/small/file$n"
    libnfs nfs-cp "$run/small/file$n" "$(libnfs_url "$writer" "/v$version-file$n")"
  done
  libnfs nfs-ls "$(libnfs_url "$version" /)"
  for n in $sizes; do
    grep -qE " +$n v$version-file$n\$" "$run/libnfs.out" || fail "nfs-ls of v$version: no $n octets: $(cat "$run/libnfs.out")"
  done
  for n in $sizes; do
    libnfs nfs-cat "$(libnfs_url "$version" "/v$version-file$n")"
    cmp "$run/small/file$n" "$run/libnfs.out" || fail "v$version: $n octets came back different"
  done
  head -c $((mib << 20)) /dev/urandom >"$run/large"
  libnfs nfs-cp "$run/large" "$(libnfs_url 3 "/v$version-large")"
  libnfs nfs-cp "$(libnfs_url "$version" "/v$version-large")" "$run/large-back"
  cmp "$run/large" "$run/large-back" || fail "v$version: $mib MiB came back different"
  rm -r "$run/small" "$run/large" "$run/large-back" "$run"/libnfs.*
}
