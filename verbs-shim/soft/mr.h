#pragma once

#include <cstddef>
#include <cstdint>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/fleet.h"

namespace weft::verbs::soft {

class SoftMr final : public Mr {
 public:
  SoftMr(Fleet& fleet, void* addr, std::size_t length, ddp::Stag stag)
      : fleet_(fleet), addr_(addr), length_(length), stag_(stag) {}
  ~SoftMr() override { fleet_.remove(stag_); }
  void* addr() const override { return addr_; }
  std::size_t length() const override { return length_; }
  std::uint32_t lkey() const override { return stag_.value; }
  std::uint32_t rkey() const override { return stag_.value; }
  std::size_t num_windows() const override { return fleet_.core().regions().num_bound(stag_); }

 private:
  Fleet& fleet_;
  void* addr_;
  std::size_t length_;
  ddp::Stag stag_;
};

}  // namespace weft::verbs::soft
