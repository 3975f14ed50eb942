#pragma once

#include <atomic>
#include <cstdint>

#include "apps/nfs3/types.h"

namespace weft::serve {

// WritePromise is the write verifier (RFC 1813 section 3.3.7). While it stays the same, UNSTABLE writes are still there
// to be committed. It is random at each start, and changes after the kernel reported a loss.
class WritePromise {
 public:
  WritePromise();
  nfs3::Verf verf() const;
  void broken() { value_.fetch_add(1); }

 private:
  std::atomic<std::uint64_t> value_;
};

}  // namespace weft::serve
