#include "mpa/wire/violates.h"

#ifdef WEFT_MUTATE
#include <cstdlib>

namespace weft {

bool is_switched_off(std::string_view id) {
  static const char* const switched_off = std::getenv("WEFT_SWITCH_OFF");
  return switched_off != nullptr && id == switched_off;
}

}  // namespace weft
#endif
