// Included before all else under ASan, where abseil's hash tables would take another form than in Debian's library
// (Weft.cmake). ASan guards all other memory.
#pragma once

#include <absl/base/config.h>

#undef ABSL_HAVE_ADDRESS_SANITIZER
