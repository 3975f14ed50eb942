#pragma once

#include <cerrno>

#include "base/result.h"

namespace weft::serve {

// Errno is a value of errno, never 0. Three values have a meaning of their own here: ESTALE (the file is gone), EAGAIN
// (not now, ask again) and EBADMSG (not a handle that this server ever gave out).
struct Errno {
  int value = EIO;
  friend bool operator==(Errno, Errno) = default;
};

inline Errno last_errno() {
  return Errno{errno};
}

template <typename T>
using Outcome = Result<T, Errno>;

}  // namespace weft::serve
