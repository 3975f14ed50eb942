#include "apps/dissect/duration.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace weft::apps::dissect {

std::string duration_str(Timestamp time) {
  struct Unit {
    std::int64_t ns;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {{1000, "us"}, {1000000, "ms"}, {1000000000, "s"}};
  const std::int64_t ns = time.count();
  if (ns < kUnits[0].ns) return fmt::format(FMT_COMPILE("{} ns"), ns);
  const Unit* unit = kUnits;
  while (unit->ns != kUnits[2].ns && ns >= unit[1].ns) ++unit;
  const std::int64_t hundredth = unit->ns / 100;
  const std::int64_t hundredths = ns / hundredth + (ns % hundredth * 2 >= hundredth ? 1 : 0);
  return fmt::format(FMT_COMPILE("{}.{:02} {}"), hundredths / 100, hundredths % 100, unit->name);
}

}  // namespace weft::apps::dissect
