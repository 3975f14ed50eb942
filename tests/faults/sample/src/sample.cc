#include "src/sample.h"

#include <array>
#include <cassert>
#include <cstddef>

namespace sample {

namespace {
int mark = 0;
}

// Noticed: negate. Survives: compare, for equal numbers are equal.
int larger(int a, int b) {
  if (a > b) return a;
  return b;
}

// Survives: its test rounds no number.
int half(int n) {
  return (n + 1) / 2;
}

// Hangs: without the second statement.
int count_up(int n) {
  int i = 0;
  while (i < n) {
    if (i == n) break;
    ++i;
  }
  return i;
}

// Crashes: without the guard.
int value_of(const int* p) {
  if (p == nullptr) return -1;
  return *p;
}

// Not reached.
int never_called(int n) {
  assert(n != 17);
  return n - 3;
}

// No program runs it: no place for a fault.
consteval std::size_t twice_of(std::size_t n) {
  const std::size_t twice = n + n;
  return twice;
}

// Survives: no test asks for the mark. Template arguments and constant expressions are no place for a fault.
void set_mark() {
  std::array<int, 4> four{};
  static_assert(sizeof(four) == 16 && twice_of(2) == 4);
  mark = static_cast<int>(four.size());
}

}  // namespace sample
