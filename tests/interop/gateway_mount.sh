# Sourced by the cases in which Linux mounts Ganesha. gateway_mount VERSION: through a gateway, and works there.
# gateway_mount VERSION tcp: the same over TCP through two, back to back.
source "$(dirname "${BASH_SOURCE[0]}")/ganesha.sh"

gateway_mount() {
  ganesha_up
  head -c "$(amount 256 16)M" /dev/urandom >"$run/export/large"
  start gateway gateway --listen rdma://127.0.0.1:0 --connect "tcp://127.0.0.1:$nfs_port" --log-level info
  local gateways=("$started") gateway port
  port=$(port gateway listen)
  if [ "${2:-rdma}" = tcp ]; then
    start to_rdma gateway --listen tcp://127.0.0.1:0 --connect "rdma://127.0.0.1:$port" --log-level info
    gateways=("$started" "${gateways[@]}")
    port=$(port to_rdma listen)
  fi
  LAB_SIW=${LAB_SIW:-mended} LAB_TIMEOUT=900 LAB_PROGRAMS=${weft%/apps/weft}/tests/interop/byte_locks guest <<SCRIPT
rdma_port=$port mount_port=$mount_port nfs_version=$1 nfs_path=/export nfs_proto=${2:-rdma}
$(cat "$interop/nfs_work.sh")
siw_up
# Kernel 7.2 asks for delegations of directories, which Ganesha 4.3 does not answer as it should (README.md).
modprobe nfsv4
asks=/sys/module/nfsv4/parameters/directory_delegations
[ ! -e \$asks ] || echo N >\$asks
mount_weft /mnt
grep ' /mnt ' /proc/mounts
say "copying a tree in"
tree_in /mnt/tree $(amount 1000 100)
umount /mnt || fail "umount"
mount_weft /mnt
tree_check /mnt/tree
say "renames, links, removals"
names /mnt/tree
large_copy /mnt
say "several mounts"
for n in 1 2 3; do mkdir -p /m\$n; mount_weft /m\$n hard,nosharecache; done
several /m1 /m2 /m3
[ $1 = 3 ] || byte_locks /m1 /m2
umount /m1 /m2 /m3 /mnt || fail "umount"
SCRIPT
  if [ "$1" != 3 ]; then
    await locked 900 >/dev/null
    # Ganesha holds the same ranges of the file itself.
    "${weft%/apps/weft}/tests/interop/byte_locks" "$run/export/locks" refused:0:50 held:0:50 \
      free:300:0 || fail "the server's file is not locked as the client's is"
    tell looked
  fi
  guest_done
  (cd "$run/export/tree" && sha256sum --quiet -c "$run/share/sums") || fail "the exported tree is not what the guest wrote"
  cmp "$run/export/large" "$run/export/large_back" || fail "the large file is not what the guest read"
  for gateway in "${gateways[@]}"; do stop "$gateway" gateway; done
  grep -h 'items placed' "$run"/{gateway,to_rdma}.err 2>/dev/null || true
  if grep -E 'warning|error' "$run"/{gateway,to_rdma}.err 2>/dev/null; then fail "a gateway complains"; fi
  ganesha_down
}
