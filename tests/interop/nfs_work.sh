# The work of the NFS cases in a mount, in the guest. The case sets rdma_port, and for NFSv3 mount_port. Other variables
# have defaults here.
nfs_version=${nfs_version:-3} nfs_path=${nfs_path:-/} nfs_proto=${nfs_proto:-rdma}

# mount_weft DIR [OPTION...]: over RDMA, if not nfs_proto=tcp. NFSv3 asks MOUNT over TCP and does without lock manager and
# portmapper.
mount_weft() {
  modprobe rpcrdma
  version=vers=$nfs_version
  [ "$nfs_version" != 3 ] || version=vers=3,nolock,mountproto=tcp,mountport=$mount_port
  mount.nfs "$host_ip:$nfs_path" "$1" -o "$nfs_proto,port=$rdma_port,$version,${2:-hard}" || fail "mount $1 $version"
}
drop_caches() {
  sync
  echo 3 >/proc/sys/vm/drop_caches
}
# tree_in DIR N: N files of many sizes in folders, like a source tree; their checksums go to the host.
tree_in() {
  mkdir -p /tmp/tree
  n=0
  while [ $n -lt "$2" ]; do
    mkdir -p "/tmp/tree/dir$((n % 40))/sub$((n % 7))"
    head -c $(((n * 7919) % 40000)) /dev/urandom >"/tmp/tree/dir$((n % 40))/sub$((n % 7))/file$n.c"
    n=$((n + 1))
  done
  cp -a /tmp/tree "$1" || fail "cp"
  (cd /tmp/tree && find . -type f -print0 | xargs -0 sha256sum) >/host/sums
}
tree_check() {
  (cd "$1" && sha256sum -c /host/sums >/tmp/checked) || fail "checksums differ: $(grep -v OK /tmp/checked | head -n 3)"
  say "$(grep -c ': OK' /tmp/checked) files have their checksums"
}
# names DIR: renames over folders and over files, hard and symbolic links, removals; leaves DIR as it was.
names() {
  d=$1/names
  mkdir "$d" "$d/a" "$d/b" && echo one >"$d/a/f" && echo two >"$d/b/g" || fail "mkdir"
  mv "$d/a/f" "$d/b/f" && [ "$(cat "$d/b/f")" = one ] || fail "rename into another folder"
  mv -f "$d/b/f" "$d/b/g" && [ "$(cat "$d/b/g")" = one ] && [ ! -e "$d/b/f" ] || fail "rename over a file"
  mv "$d/b" "$d/a/c" && [ "$(cat "$d/a/c/g")" = one ] || fail "rename of a folder"
  ln "$d/a/c/g" "$d/hard" && [ "$(stat -c %h "$d/hard")" = 2 ] || fail "hard link"
  ln -s a/c/g "$d/soft" && [ "$(cat "$d/soft")" = one ] || fail "symbolic link"
  chmod 640 "$d/hard" && [ "$(stat -c %a "$d/a/c/g")" = 640 ] || fail "chmod"
  truncate -s 100000 "$d/hard" && [ "$(stat -c %s "$d/a/c/g")" = 100000 ] || fail "truncate"
  rmdir "$d/a" 2>/dev/null && fail "a folder that is not empty was removed"
  exec 9<"$d/hard"
  rm "$d/hard" "$d/a/c/g"
  [ "$(head -c 3 <&9)" = one ] || fail "a file that was removed while open is gone"
  exec 9<&-
  # NFSv4 closes, and removes the file that was kept under another name, a little later.
  n=0
  while ls "$d"/.nfs* >/dev/null 2>&1; do
    n=$((n + 1))
    [ $n -lt 600 ] || fail "a file that was removed while open stays"
    usleep 50000
  done
  rm -rf "$d"
  [ ! -e "$d" ] || fail "rm -r"
  n=0
  mkdir "$1/many"
  while [ $n -lt 300 ]; do
    : >"$1/many/a name that is long enough to fill directory pages, number $n"
    n=$((n + 1))
  done
  [ "$(ls "$1/many" | wc -l)" = 300 ] || fail "ls of 300 names"
  rm -rf "$1/many"
}
# large_io DIR: 64 MiB sequentially and in random 64 KiB pieces, buffered and O_DIRECT, compared with the same in /tmp.
large_io() {
  head -c 67108864 /dev/urandom >/tmp/large
  for flag in "" direct; do
    out=${flag:+oflag=$flag} in=${flag:+iflag=$flag}
    dd if=/tmp/large of="$1/large" bs=1M conv=fsync $out 2>/tmp/dd || fail "write $flag: $(cat /tmp/dd)"
    drop_caches
    dd if="$1/large" of=/tmp/back bs=1M $in 2>/tmp/dd || fail "read $flag: $(cat /tmp/dd)"
    cmp /tmp/large /tmp/back || fail "64 MiB came back different ($flag)"
    n=0 seed=12345
    while [ $n -lt 60 ]; do
      seed=$(((seed * 1103515245 + 12345) % 2147483648))
      at=$(((seed / 65536) % 1024))
      head -c 65536 /dev/urandom >/tmp/piece
      dd if=/tmp/piece of="$1/large" bs=64K seek=$at conv=notrunc $out 2>/dev/null || fail "random write $flag"
      dd if=/tmp/piece of=/tmp/large bs=64K seek=$at conv=notrunc 2>/dev/null
      n=$((n + 1))
    done
    drop_caches
    n=0
    while [ $n -lt 60 ]; do
      seed=$(((seed * 1103515245 + 12345) % 2147483648))
      at=$(((seed / 65536) % 1024))
      dd if="$1/large" of=/tmp/piece bs=64K skip=$at count=1 $in 2>/dev/null || fail "random read $flag"
      dd if=/tmp/large bs=64K skip=$at count=1 2>/dev/null | cmp - /tmp/piece || fail "a random read came back different ($flag)"
      n=$((n + 1))
    done
    cmp /tmp/large "$1/large" || fail "after random writes the file is different ($flag)"
    say "64 MiB ${flag:-buffered}: written, read, 60 random writes and reads"
  done
  rm /tmp/back /tmp/piece
}
# large_copy DIR: reads DIR/large and writes it back. The host made it, because that would take too long here.
large_copy() {
  dd if="$1/large" of="$1/large_back" bs=1M conv=fsync 2>/tmp/dd || fail "copy: $(cat /tmp/dd)"
  drop_caches
  cmp "$1/large" "$1/large_back" || fail "the large file came back different"
  say "a large file: $(tail -n 1 /tmp/dd)"
}
# byte_locks DIR OTHER: two mounts of the same, whose processes lock ranges of a file and keep each other out at the
# server. The locks of DIR stay until the host told `looked`.
byte_locks() {
  ours byte_locks "$1/locks" write:0:100 read:200:100 tell:/host/locked await:/tmp/seen \
    unlock:50:50 tell:/tmp/part await:/tmp/held await:/host/looked unlock:0:0 &
  holder=$!
  ours byte_locks "$2/locks" await:/host/locked refused:0:10 refused:250:10 held:90:20 free:100:100 free:300:0 \
    write:100:100 read:200:10 tell:/tmp/seen await:/tmp/part free:50:50 held:0:50 write:50:50 tell:/tmp/held wait:0:50 ||
    fail "locks of the other"
  wait $holder || fail "locks of the one"
  say "byte-range locks"
}
# several DIR...: each mount writes a file while the others do, and all read all.
several() {
  for m in "$@"; do
    (head -c 8388608 /dev/urandom >"/tmp/own${m##*/}" && cp "/tmp/own${m##*/}" "$m/from${m##*/}") &
  done
  wait
  for m in "$@"; do
    for w in "$@"; do cmp "/tmp/own${w##*/}" "$m/from${w##*/}" || fail "$m reads another file than $w wrote"; done
  done
}
