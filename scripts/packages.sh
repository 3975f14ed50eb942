# Sourced by the other scripts: the Debian packages that the project needs, and how to get them. They are the same on
# Debian 12 and 13, but for two names with a version in them, for which a word stands here:
#   @boost      the headers of Boost 1.81 or newer
#   @clang:X    the package X of one version of clang, 16 or newer; X has a % where the version stands

WEFT_BUILD_PACKAGES="cmake ninja-build g++ pkg-config @boost libisal-dev libabsl-dev libfmt-dev libspdlog-dev libcli11-dev libpcap-dev nlohmann-json3-dev libssl-dev libbenchmark-dev libibverbs-dev librdmacm-dev systemtap-sdt-dev"
WEFT_TEST_PACKAGES="libgtest-dev libgmock-dev tshark tcpdump time git python3 @clang:python3-clang-% python3-prometheus-client rpcsvc-proto libtirpc-dev iproute2 chromium chromium-driver python3-selenium bpftrace e2fsprogs"
WEFT_INTEROP_PACKAGES="qemu-system-x86 cpio xz-utils python3 nfs-ganesha nfs-ganesha-vfs libnfs-utils rpcbind iproute2"
WEFT_FORMAT_PACKAGES="clang-format-14 git"
WEFT_TIDY_PACKAGES="@clang:clang-tidy-% @clang:clang-% git"
WEFT_CLANG_PACKAGES="@clang:clang-% @clang:libclang-rt-%-dev"

say() { printf '\n== %s\n' "$*"; }

is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }
# in_archive PACKAGE: whether the archive has it. The lists of packages are fetched where none is there yet.
in_archive() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

# candidate PACKAGE: the first two parts of the version that apt would install, without an epoch; nothing: it has none.
candidate() { apt-cache policy "$1" | sed -nE 's/^ *Candidate: ([0-9]+:)?([0-9]+\.[0-9]+).*/\2/p'; }

# clang_version: the version of clang that the checks use: the lowest from 16 on that is installed; else Debian's
# default, if it is not older; else the lowest that Debian has.
clang_version() {
  local version
  for version in $(seq 16 40); do
    command -v "clang++-$version" >/dev/null && echo "$version" && return 0
  done
  version=$(candidate clang)
  [ "${version%%.*}" -ge 16 ] 2>/dev/null && echo "${version%%.*}" && return 0
  for version in $(seq 16 40); do
    in_archive "clang-$version" && echo "$version" && return 0
  done
  echo "no clang from version 16 on in the archive" >&2
  return 1
}

# has_boost: whether headers of Boost 1.81 or newer are here.
has_boost() {
  local header=/usr/include/boost/version.hpp
  [ -f $header ] && [ "$(sed -nE 's/^#define BOOST_VERSION ([0-9]+).*/\1/p' $header)" -ge 108100 ]
}
# boost_package: the first of Debian's packages that has them: its default version, or one with a name of its own.
boost_package() {
  local version
  version=$(candidate libboost-dev)
  [ "${version#1.}" -ge 81 ] 2>/dev/null && echo libboost-dev && return 0
  for version in $(seq 81 120); do
    in_archive "libboost1.$version-dev" && echo "libboost1.$version-dev" && return 0
  done
  echo "no Boost from version 1.81 on in the archive" >&2
  return 1
}

# missing_packages PACKAGE...: these of them that are not installed, by their names in the archive.
missing_packages() {
  local package
  for package in "$@"; do
    case $package in
      @boost) has_boost && continue || package=$(boost_package) ;;
      @clang:*) package=${package#@clang:} && package=${package//%/$(clang_version)} ;;
    esac
    is_installed "$package" || echo "$package"
  done
}

# need_packages PACKAGE...: installs missing packages; without root it prints the one command to run and exits 1.
need_packages() {
  local missing
  # A fresh machine has no lists to look names up in.
  if ! in_archive g++ && [ "$(id -u)" -eq 0 ]; then apt-get update -q >/dev/null; fi
  missing=$(missing_packages "$@" | sort -u | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  local command="apt-get install -y --no-install-recommends $missing"
  if [ "$(id -u)" -ne 0 ]; then
    printf 'These Debian packages are missing. As root, run:\n  %s\n' "$command" >&2
    exit 1
  fi
  say "installing Debian packages: $missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >/dev/null
  $command >/dev/null
}

# build_preset PRESET [TARGET...]: configures and builds, everything where no target is named. WEFT_CMAKE_OPTIONS
# goes to cmake, too. Ninja counts its steps and the seconds.
build_preset() {
  local preset=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    # What one clone has compiled serves the others.
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true
  fi
  say "configuring and building preset $preset"
  cmake --preset "$preset" "${launcher[@]}" ${WEFT_CMAKE_OPTIONS:-} >/dev/null
  NINJA_STATUS='[%f/%t, %e s] ' cmake --build --preset "$preset" --target "${@:-all}"
}
