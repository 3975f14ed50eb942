# Sourced by the lab's scripts: where the images are (outside the tree), which kernels there are, and two ways to speak.
lab=${WEFT_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/weft-lab}
# Debian's suites with their kernels. A suite's kernel goes on: the image is of the version that the suite has when the
# image is made, and `newest` is the kernel of the last suite, whatever its version is then.
lab_kernels="6.1 6.12 7.2"
lab_suite() { # VERSION
  case $1 in
    6.1) echo bookworm ;;
    6.12) echo trixie ;;
    *) echo sid ;;
  esac
}
lab_say() { printf 'lab: %s\n' "$*" >&2; }
lab_fail() {
  local line
  for line; do lab_say "$line"; done
  exit 1
}
# Printed when a fault of the emulator has stopped a guest (README.md). run-cases then runs the case once more.
emulator_fault="the emulator ran code of the kernel that the kernel was changing (int3)"
