# Sourced by the lab's scripts: where the images are (outside the tree), and two ways to speak.
lab=${WEFT_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/weft-lab}
lab_say() { printf 'lab: %s\n' "$*" >&2; }
lab_fail() {
  lab_say "$*"
  exit 1
}
