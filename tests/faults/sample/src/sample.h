#pragma once

#include <cstdint>

namespace sample {

int larger(int a, int b);
int half(int n);
int count_up(int n);
int value_of(const int* p);
int never_called(int n);
void set_mark();

// In a header, and also evaluated by the compiler.
constexpr bool is_small(std::uint8_t n) {
  return n < 10;
}
inline constexpr bool kNineIsSmall = is_small(9);
static_assert(kNineIsSmall);

}  // namespace sample
