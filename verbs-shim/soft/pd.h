#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/memory_table.h"

namespace weft::verbs::soft {

class SoftMr final : public Mr {
 public:
  SoftMr(RegionTable& table, void* addr, std::size_t length, ddp::Stag stag)
      : table_(table), addr_(addr), length_(length), stag_(stag) {}
  ~SoftMr() override { table_.remove(stag_); }
  void* addr() const override { return addr_; }
  std::size_t length() const override { return length_; }
  std::uint32_t lkey() const override { return stag_.value; }
  std::uint32_t rkey() const override { return stag_.value; }
  std::size_t num_windows() const override { return table_.num_bound(stag_); }

 private:
  RegionTable& table_;
  void* addr_;
  std::size_t length_;
  ddp::Stag stag_;
};

// SoftMw knows the key that was posted last; what is bound at the moment only the table knows.
class SoftMw final : public Mw {
 public:
  SoftMw(RegionTable& table, ddp::Stag stag) : table_(table), rkey_(stag.value) {}
  ~SoftMw() override { table_.remove(ddp::Stag{rkey_}); }
  std::uint32_t rkey() const override { return rkey_; }
  void set_rkey(std::uint32_t rkey) { rkey_ = rkey; }

 private:
  RegionTable& table_;
  std::uint32_t rkey_;
};

class SoftPd final : public Pd {
 public:
  SoftPd(RegionTable& table, std::uint32_t number) : table_(table), number_(number) {}
  Result<std::unique_ptr<Mr>> reg_mr(void* addr, std::size_t length, Access access) override;
  Result<std::unique_ptr<Mw>> alloc_mw() override;
  std::uint32_t number() const { return number_; }

 private:
  RegionTable& table_;
  const std::uint32_t number_;
};

}  // namespace weft::verbs::soft
