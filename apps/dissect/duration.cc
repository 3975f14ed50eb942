#include "apps/dissect/duration.h"

#include <cstdint>
#include <string_view>

#include "apps/dissect/append.h"

namespace weft::apps::dissect {

std::string duration_str(Timestamp time) {
  struct Unit {
    std::int64_t ns;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {{1000, "us"}, {1000000, "ms"}, {1000000000, "s"}};
  // Clocks of captures can go backwards. The lowest time of all has no opposite.
  if (time < Timestamp()) return "-" + duration_str(time == Timestamp::min() ? Timestamp::max() : -time);
  const std::int64_t ns = time.count();
  std::string text;
  if (ns < kUnits[0].ns) {
    append(text, FMT_COMPILE("{} ns"), ns);
    return text;
  }
  const Unit* unit = kUnits;
  while (unit->ns != kUnits[2].ns && ns >= unit[1].ns) ++unit;
  const std::int64_t hundredth = unit->ns / 100;
  const std::int64_t hundredths = ns / hundredth + (ns % hundredth * 2 >= hundredth ? 1 : 0);
  append(text, FMT_COMPILE("{}.{}{} {}"), hundredths / 100, hundredths / 10 % 10, hundredths % 10, unit->name);
  return text;
}

}  // namespace weft::apps::dissect
