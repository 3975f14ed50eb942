# Sourced by build-image: the packages of a Debian suite, fetched and unpacked for an image, and never installed. apt works in
# a root of its own, $lab/apt/SUITE, with lists, state and cache of that suite; of the machine's apt it takes the archive's
# address, the keys and the settings of the network (a proxy).

# archive: the address of Debian's archive in the machine's own sources.
archive() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | sed 's#/$##' | grep "$1\$" | head -n 1
}
# suite_apt SUITE: makes the root of apt. Sets $apt, its options.
suite_apt() {
  local suite=$1 root=$lab/apt/$1 keys=/usr/share/keyrings/debian-archive-keyring.gpg from security
  from=${WEFT_LAB_ARCHIVE:-$(archive /debian || true)}
  from=${from:-http://deb.debian.org/debian}
  security=$(archive /debian-security || true)
  [ ! -e "$keys" ] || keys="[signed-by=$keys]"
  [ "${keys:0:1}" = "[" ] || keys=
  mkdir -p "$root"/{archives,lists}/partial
  : >"$root/status"
  echo "deb $keys $from $suite main" >"$root/sources.list"
  # sid has no suite of security updates.
  [ -z "$security" ] || [ "$suite" = sid ] || echo "deb $keys $security $suite-security main" >>"$root/sources.list"
  cat >"$root/conf" <<CONF
#clear APT::Update;
#clear DPkg;
Dir::Etc::sourcelist "$root/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$root";
Dir::State::status "$root/status";
Dir::Cache "$root";
Debug::NoLocking "1";
APT::Sandbox::User "$(id -un)";
APT::Architecture "amd64";
APT::Install-Recommends "false";
CONF
  apt="-qq -c $root/conf"
  archive_address=$from
}
# suite_says COMMAND...: runs apt and fails with what is wrong with the suite.
suite_says() {
  local said
  said=$("$@" 2>&1) && return 0
  lab_fail "Debian's $suite cannot be had from $archive_address:" \
    "  $(grep -E '^(E|Err|W)' <<<"$said" | head -n 1)" \
    "This machine's apt names that archive; WEFT_LAB_ARCHIVE=URL names another. --kernel 6.1, 6.12, 7.2: bookworm, trixie, sid."
}
candidate() { apt-cache $apt policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p'; }
# unpack PACKAGE_FILE FOLDER: a package's files, but for texts and for drivers of hardware that no guest has: of drivers/ it
# keeps char, infiniband, net, virtio and others with their initials.
unpack() {
  dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink --no-same-owner -C "$2" \
    --exclude=./usr/share/{doc,man,locale,info} --exclude='*lib/modules/*/kernel/sound' \
    --exclude='*lib/modules/*/kernel/drivers/[!cinv]*' --exclude='*lib/modules/*/kernel/drivers/net/[eiw]*'
}
