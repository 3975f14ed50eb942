#pragma once

// absl::InlinedVector moves an empty vector's storage as it is; g++ 12 takes that for the use of uninitialised memory
// wherever it sees through the move, so the warning is silenced where it points to: inside that header.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include "absl/container/inlined_vector.h"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
