#include "apps/common/idle_trim.h"

#include <malloc.h>

namespace weft::apps {

void bound_unused_heap() {
#ifdef __GLIBC__
  // Blocks beyond the one go back at once, and an arena's unused end beyond the other. A READDIRPLUS of 1 MiB takes
  // longer than the faults of both.
  constexpr int kLargeBlock = 1 << 20, kUnusedEnd = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  ::mallopt(M_TRIM_THRESHOLD, kUnusedEnd);
#endif
}

void trim_heap() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace weft::apps
