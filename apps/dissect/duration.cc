#include "apps/dissect/duration.h"

#include <cstdint>

#include "apps/dissect/append.h"

namespace weft::apps::dissect {

namespace {

// Hundredths of a unit of so many nanoseconds: "12.34". The unit is known to the compiler, which then needs no
// division.
template <std::int64_t kUnit>
char* put_hundredths(char* to, std::int64_t ns) {
  constexpr std::int64_t kHundredth = kUnit / 100;
  const std::int64_t hundredths = ns / kHundredth + (ns % kHundredth * 2 >= kHundredth ? 1 : 0);
  to = put_decimal(to, static_cast<std::uint64_t>(hundredths / 100));
  *to++ = '.';
  *to++ = static_cast<char>('0' + hundredths / 10 % 10);
  *to++ = static_cast<char>('0' + hundredths % 10);
  return to;
}

}  // namespace

DurationText::DurationText(Timestamp time) {
  constexpr std::int64_t kUs = 1000, kMs = 1000000, kS = 1000000000;
  char* to = text_.data();
  // Clocks of captures can go backwards. The lowest time of all has no opposite.
  if (time < Timestamp()) {
    *to++ = '-';
    time = time == Timestamp::min() ? Timestamp::max() : -time;
  }
  const std::int64_t ns = time.count();
  std::string_view unit = " s";
  if (ns < kUs) {
    to = put_decimal(to, static_cast<std::uint64_t>(ns));
    unit = " ns";
  } else if (ns < kMs) {
    to = put_hundredths<kUs>(to, ns);
    unit = " us";
  } else if (ns < kS) {
    to = put_hundredths<kMs>(to, ns);
    unit = " ms";
  } else {
    to = put_hundredths<kS>(to, ns);
  }
  to = copy_text(to, unit);
  len_ = static_cast<std::size_t>(to - text_.data());
}

}  // namespace weft::apps::dissect
