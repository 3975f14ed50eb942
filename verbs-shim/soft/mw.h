#pragma once

#include <cstdint>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/fleet.h"

namespace weft::verbs::soft {

// SoftMw knows the key of the last posted bind. Only the table knows the current binding.
class SoftMw final : public Mw {
 public:
  SoftMw(Fleet& fleet, ddp::Stag stag) : fleet_(fleet), rkey_(stag.value) {}
  ~SoftMw() override { fleet_.remove(ddp::Stag{rkey_}); }
  std::uint32_t rkey() const override { return rkey_; }
  void set_rkey(std::uint32_t rkey) { rkey_ = rkey; }

 private:
  Fleet& fleet_;
  std::uint32_t rkey_;
};

}  // namespace weft::verbs::soft
