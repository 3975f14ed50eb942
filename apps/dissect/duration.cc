#include "apps/dissect/duration.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace weft::apps::dissect {

DurationText::DurationText(Timestamp time) {
  struct Unit {
    std::int64_t ns;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {{1000, " us"}, {1000000, " ms"}, {1000000000, " s"}};
  char* to = text_.data();
  char* const end = to + text_.size();
  // Clocks of captures can go backwards. The lowest time of all has no opposite.
  if (time < Timestamp()) {
    *to++ = '-';
    time = time == Timestamp::min() ? Timestamp::max() : -time;
  }
  const std::int64_t ns = time.count();
  std::string_view name = " ns";
  if (ns < kUnits[0].ns) {
    to = std::to_chars(to, end, ns).ptr;
  } else {
    const Unit* unit = kUnits;
    while (unit->ns != kUnits[2].ns && ns >= unit[1].ns) ++unit;
    const std::int64_t hundredth = unit->ns / 100;
    const std::int64_t hundredths = ns / hundredth + (ns % hundredth * 2 >= hundredth ? 1 : 0);
    to = std::to_chars(to, end, hundredths / 100).ptr;
    *to++ = '.';
    *to++ = static_cast<char>('0' + hundredths / 10 % 10);
    *to++ = static_cast<char>('0' + hundredths % 10);
    name = unit->name;
  }
  to = std::ranges::copy(name, to).out;
  len_ = static_cast<std::size_t>(to - text_.data());
}

}  // namespace weft::apps::dissect
