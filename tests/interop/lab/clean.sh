# Sourced by init. A guest serves another case only where nothing of the last one is left. Its processes and mounts went with its
# namespaces, and the NFS server with its mount of nfsd. Here goes every module that was loaded since the boot, with whatever the
# module held (devices, connections), and settings of the kernel become what they were. A guest that cannot come to that says
# why and ends.

# remember: what clean comes back to.
remember() {
  cut -d' ' -f1 /proc/modules >/base/modules
  settings >/base/settings
  dmesg -c >/dev/null
}
settings() { grep -rs . /proc/sys/net/ipv4 /proc/sys/net/core /proc/sys/net/ipv6 /proc/sys/vm | sort; }
# changed: the settings that are not what they were, as they were. busybox's diff has a form of its own.
changed() {
  settings >/tmp/settings
  grep -vxFf /tmp/settings /base/settings
}
loaded() { cut -d' ' -f1 /proc/modules | grep -vxFf /base/modules; }
clean() {
  rdma link 2>/dev/null | sed -n 's#^link \([^/]*\)/.*#\1#p' | while read -r name; do rdma link delete "$name"; done
  tries=0
  while [ -n "$(loaded)" ]; do
    unused=$(awk '$3 == 0 {print $1}' /proc/modules | grep -vxFf /base/modules)
    [ -z "$unused" ] || rmmod $unused 2>/tmp/rmmod || usleep 100000
    [ -n "$unused" ] || usleep 100000
    tries=$((tries + 1))
    if [ $tries -gt 100 ]; then
      echo "modules stay:" $(loaded) "$(head -n 1 /tmp/rmmod)"
      return 1
    fi
  done
  # Their numbers may be others next time.
  rm -rf /dev/infiniband
  changed | while IFS=: read -r file value; do echo "$value" >"$file"; done
  [ -z "$(changed)" ] || { echo "settings were: $(changed | head -n 4)" && return 1; }
  if dmesg -c | grep -E 'Call Trace|BUG:|WARNING:' >/tmp/warned; then
    echo "the kernel warned: $(head -n 1 /tmp/warned)"
    return 1
  fi
  return 0
}
