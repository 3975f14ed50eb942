# Sourced by the guest's script of every case.
guest_ip=10.0.2.15
host_ip=10.0.2.2
say() { echo "[$(cut -d' ' -f1 /proc/uptime)] $*"; }
fail() {
  say "FAILED: $*"
  dmesg | tail -n 20
  exit 1
}
# tell NAME [VALUE]: the host waits for it with `await`. await NAME: prints the host's value; waits two minutes at most.
tell() {
  echo "${2:-}" >"/host/$1.new"
  mv "/host/$1.new" "/host/$1"
}
await() {
  n=0
  while [ ! -e "/host/$1" ]; do
    n=$((n + 1))
    [ $n -lt 1200 ] || fail "the host never told '$1'"
    usleep 100000
  done
  cat "/host/$1"
}
# device_nodes: the nodes that udev would make.
device_nodes() {
  mkdir -p /dev/infiniband
  for class in /sys/class/infiniband_verbs/uverbs* /sys/class/misc/rdma_cm; do
    [ -e "$class/dev" ] || continue
    IFS=: read -r major minor <"$class/dev"
    [ -e "/dev/infiniband/${class##*/}" ] || mknod "/dev/infiniband/${class##*/}" c "$major" "$minor"
  done
}
# siw_up [PARAMETER=VALUE...]: siw0 on eth0. The parameters are for the module with switches. Its sockets have room for
# all that is under way: siw may send a wrong CRC while one is full (README).
siw_up() {
  echo 4096 4194304 4194304 >/proc/sys/net/ipv4/tcp_wmem
  modprobe ib_uverbs && modprobe rdma_ucm && modprobe siw "$@" && rdma link add siw0 type siw netdev eth0 || fail "no siw0"
  device_nodes
}
# siw_lo_up: siwlo on lo, too.
siw_lo_up() {
  rdma link add siwlo type siw netdev lo || fail "no siwlo"
  device_nodes
}
# rxe_up: RoCE on eth0 instead.
rxe_up() {
  modprobe ib_uverbs && modprobe rdma_ucm && modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0 || fail "no rxe0"
  device_nodes
}
# listening PORT: waits until something in the guest listens there.
listening() {
  n=0
  until ss -Hltn "sport = :$1" | grep -q .; do
    n=$((n + 1))
    [ $n -lt 600 ] || fail "nothing listens on port $1"
    usleep 50000
  done
}
# nfsd_up: the kernel's NFS server with /export on a tmpfs, over TCP at 2049 and RDMA at 20049.
nfsd_up() {
  modprobe nfsd && modprobe rpcrdma || fail "no nfsd"
  mount -t nfsd nfsd /proc/fs/nfsd
  mkdir -p /run/rpcbind
  rpcbind -w 2>/dev/null || rpcbind
  mount -t tmpfs -o size=600m tmpfs /export
  chmod 1777 /export
  echo '/export *(rw,sync,no_root_squash,insecure,fsid=0,no_subtree_check)' >/etc/exports
  : >/var/lib/nfs/etab
  : >/var/lib/nfs/rmtab
  exportfs -ra
  echo 10 >/proc/fs/nfsd/nfsv4leasetime
  echo 10 >/proc/fs/nfsd/nfsv4gracetime
  # nfs-utils 3 leaves version 4.0 off unless it is named.
  rpc.nfsd -V 4.0 4 && rpc.mountd -p 20048 && echo "rdma 20049" >/proc/fs/nfsd/portlist || fail "the kernel's NFS server does not start"
  # From the end of the grace period on, clients may open files. A server that has just started may not take the wish yet.
  n=0
  until grep -q Y /proc/fs/nfsd/v4_end_grace; do
    n=$((n + 1))
    [ $n -lt 600 ] || fail "the grace period of the kernel's NFS server does not end"
    echo Y >/proc/fs/nfsd/v4_end_grace 2>/dev/null
    usleep 50000
  done
}
# ours PROGRAM ARGUMENT...: one of LAB_PROGRAMS. weft ARGUMENT...: the same of `weft`.
ours() {
  program=$1
  shift
  LD_LIBRARY_PATH=/lab/ours "/lab/ours/$program" "$@"
}
weft() { ours weft "$@"; }
