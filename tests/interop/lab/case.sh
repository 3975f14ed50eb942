# case.sh FOLDER: runs the script of a case, in the guest, in mount and process namespaces of its own: /host is the folder
# shared with the host. When the script ends, so do all processes that it left, and with them goes what the case mounted and
# what it wrote to /tmp, /run, /etc and /var/lib/nfs.
mount -t proc proc /proc
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t tmpfs lab /lab
cp -r "$1/segment/." /lab/
for folder in /etc /var/lib/nfs; do
  mkdir -p "/run/own$folder"
  cp -a "$folder/." "/run/own$folder/"
  mount --bind "/run/own$folder" "$folder"
done
mount --bind "$1/share" /host
if [ -e /lab/siw.ko ]; then mount --bind /lab/siw.ko "/usr/lib/modules/$(uname -r)/extra/siw.ko"; fi
PATH=/lab:$PATH sh /lab/script
# Before the rest ends, which may take its time: a mount of a server that is gone.
echo $? >/host/status.new
mv /host/status.new /host/status
