#pragma once

// absl::InlinedVector moves an empty vector's storage as it is. g++ 12 takes the move for a use of uninitialised memory
// when it inlines it. The warning points inside the absl header, so it is silenced there.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include "absl/container/inlined_vector.h"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
