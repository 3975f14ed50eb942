#include "mpa/wire/violates.h"

#ifdef WEFT_MUTATE
#include <cstdlib>

namespace weft {

bool violates(std::string_view id, bool condition) {
  static const char* const switched_off = std::getenv("WEFT_SWITCH_OFF");
  return condition && (switched_off == nullptr || id != switched_off);
}

}  // namespace weft
#endif
