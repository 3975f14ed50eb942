#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/soft_device.h"

namespace weft::verbs::soft {

class SoftMr final : public Mr {
 public:
  SoftMr(SoftDevice& device, void* addr, std::size_t length, ddp::Stag stag)
      : device_(device), addr_(addr), length_(length), stag_(stag) {}
  ~SoftMr() override { device_.remove(stag_); }
  void* addr() const override { return addr_; }
  std::size_t length() const override { return length_; }
  std::uint32_t lkey() const override { return stag_.value; }
  std::uint32_t rkey() const override { return stag_.value; }
  std::size_t num_windows() const override { return device_.regions().num_bound(stag_); }

 private:
  SoftDevice& device_;
  void* addr_;
  std::size_t length_;
  ddp::Stag stag_;
};

// SoftMw knows the key that was posted last; what is bound at the moment only the table knows.
class SoftMw final : public Mw {
 public:
  SoftMw(SoftDevice& device, ddp::Stag stag) : device_(device), rkey_(stag.value) {}
  ~SoftMw() override { device_.remove(ddp::Stag{rkey_}); }
  std::uint32_t rkey() const override { return rkey_; }
  void set_rkey(std::uint32_t rkey) { rkey_ = rkey; }

 private:
  SoftDevice& device_;
  std::uint32_t rkey_;
};

class SoftPd final : public Pd {
 public:
  SoftPd(SoftDevice& device, std::uint32_t number) : device_(device), number_(number) {}
  Result<std::unique_ptr<Mr>> reg_mr(void* addr, std::size_t length, Access access) override;
  Result<std::unique_ptr<Mw>> alloc_mw() override;
  Result<std::unique_ptr<Srq>> create_srq(const SrqAttr& attr) override;
  std::uint32_t number() const { return number_; }

 private:
  SoftDevice& device_;
  const std::uint32_t number_;
};

}  // namespace weft::verbs::soft
