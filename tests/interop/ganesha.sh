# Sourced by the cases with NFS-Ganesha on the host, behind lib.sh's place: it begins the case anew in a mount namespace of
# its own, where /run and /var/lib/nfs are empty. Ports 111, 2049 and 20048 are free in the network namespace of run-cases,
# which the guest is in, too. Ganesha's VFS opens files by handle (open_by_handle_at), which takes root.
cannot_run() {
  echo "$1" >&2
  exit 77
}
if [ "${WEFT_GANESHA_SPACE:-}" != "$PPID.$$" ]; then
  # CAP_DAC_READ_SEARCH, which containers may lack even for root.
  (($(sed -n 's/^CapEff:\t/0x/p' /proc/self/status) >> 2 & 1)) ||
    cannot_run "NFS-Ganesha's VFS opens files by handle, which takes root's capabilities"
  [ -n "${WEFT_OWN_NETWORK:-}" ] && unshare --mount true 2>/dev/null ||
    cannot_run "no network and mount namespaces of its own are to be had"
  # exec keeps the process, which is how the second time around is known.
  WEFT_GANESHA_SPACE=$PPID.$$ exec unshare --mount -- "$0" "$@"
fi
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
ganesha_pid=
nfs_port=2049 mount_port=20048

# ganesha_up: serves $run/export, a tmpfs, as /export: NFSv3 and 4 over TCP at 2049, MOUNT at 20048.
ganesha_up() {
  local i
  mount -t tmpfs tmpfs /run
  mount -t tmpfs tmpfs /var/lib/nfs
  mkdir -p /run/rpcbind /run/ganesha /var/lib/nfs/ganesha "$run/export"
  mount -t tmpfs -o size=1g tmpfs "$run/export"
  # Without a portmapper Ganesha serves no NFSv3.
  rpcbind -w -f >"$run/rpcbind.out" 2>&1 &
  pids+=($!)
  for ((i = 0; i < 200; ++i)); do [ -S /run/rpcbind.sock ] && break || sleep 0.05; done
  rm -f "$run/ganesha.log"
  cat >"$run/ganesha.conf" <<CONF
NFS_CORE_PARAM {
  NFS_Port = $nfs_port; MNT_Port = $mount_port; Protocols = 3, 4;
  Enable_UDP = false; Enable_RQUOTA = false; Mount_Path_Pseudo = true;
}
NFSV4 { Graceless = true; Only_Numeric_Owners = true; Allow_Numeric_Owners = true; Lease_Lifetime = ${1:-20}; }
EXPORT {
  Export_Id = 1; Path = $run/export; Pseudo = /export; Access_Type = RW; Squash = No_Root_Squash;
  SecType = sys; Protocols = 3, 4; Transports = TCP; FSAL { Name = VFS; }
}
LOG { Default_Log_Level = EVENT; }
CONF
  ganesha.nfsd -F -f "$run/ganesha.conf" -L "$run/ganesha.log" -p /run/ganesha.pid >"$run/ganesha.out" 2>&1 &
  ganesha_pid=$!
  pids+=("$ganesha_pid")
  for ((i = 0; i < 400; ++i)); do
    grep -q 'NFS SERVER INITIALIZED' "$run/ganesha.log" 2>/dev/null && return 0
    kill -0 "$ganesha_pid" 2>/dev/null || break
    sleep 0.05
  done
  fail "Ganesha does not start: $(grep -E 'CRIT|FATAL' "$run/ganesha.log" | tail -n 5)"
}
# ganesha_down: Ganesha ends by itself when it is told to. Its other complaints do not concern the case.
ganesha_down() {
  local status=0 i
  kill -TERM "$ganesha_pid"
  for ((i = 0; i < 400; ++i)); do kill -0 "$ganesha_pid" 2>/dev/null && sleep 0.05 || break; done
  kill -0 "$ganesha_pid" 2>/dev/null && fail "Ganesha does not end"
  wait "$ganesha_pid" || status=$?
  [ "$status" = 0 ] || fail "Ganesha ended with $status: $(tail -n 3 "$run/ganesha.log")"
}
