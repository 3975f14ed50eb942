# Sourced by the other scripts: which Debian 12 packages the project needs, and how to get them.

WEFT_BUILD_PACKAGES="cmake ninja-build g++ pkg-config libboost1.81-dev libisal-dev libabsl-dev libfmt-dev libspdlog-dev libcli11-dev libpcap-dev nlohmann-json3-dev libssl-dev libbenchmark-dev libibverbs-dev librdmacm-dev systemtap-sdt-dev"
WEFT_TEST_PACKAGES="libgtest-dev libgmock-dev tshark tcpdump time git python3 python3-clang-16 python3-prometheus-client rpcsvc-proto libtirpc-dev iproute2 chromium chromium-driver python3-selenium bpftrace"
WEFT_INTEROP_PACKAGES="qemu-system-x86 cpio kmod gcc-12 make binutils xz-utils python3 nfs-ganesha nfs-ganesha-vfs libnfs-utils rpcbind iproute2"
WEFT_FORMAT_PACKAGES="clang-format-14 git"
WEFT_TIDY_PACKAGES="clang-tidy-16 clang-16 git"
WEFT_CLANG_PACKAGES="clang-16 libclang-rt-16-dev"

say() { printf '\n== %s\n' "$*"; }

# need_packages PACKAGE...: installs missing packages; without root it prints the one command to run and exits 1.
need_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local command="apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    printf 'These Debian packages are missing. As root, run:\n  %s\n' "$command" >&2
    exit 1
  fi
  say "installing Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >/dev/null
  $command >/dev/null
}

# build_preset PRESET [TARGET...]: configures and builds, everything where no target is named. WEFT_CMAKE_OPTIONS
# goes to cmake, too.
build_preset() {
  local preset=$1
  shift
  local launcher=()
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  say "configuring and building preset $preset"
  cmake --preset "$preset" "${launcher[@]}" ${WEFT_CMAKE_OPTIONS:-} >/dev/null
  cmake --build --preset "$preset" --target "${@:-all}"
}
