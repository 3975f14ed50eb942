#include "apps/common/idle_trim.h"

#include <malloc.h>

namespace weft::apps {

void trim_heap() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace weft::apps
