#pragma once

#include <atomic>
#include <cstdint>

#include "apps/nfs3/types.h"

namespace weft::serve {

// WritePromise is the write verifier (RFC 1813 section 3.3.7): as long as it stays the same, what was written UNSTABLE
// is still there to be committed. Random at each start; another one after the kernel said that it lost something.
class WritePromise {
 public:
  WritePromise();
  nfs3::Verf verf() const;
  void broken() { value_.fetch_add(1); }

 private:
  std::atomic<std::uint64_t> value_;
};

}  // namespace weft::serve
