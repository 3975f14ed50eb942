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

 private:
  RegionTable& table_;
  void* addr_;
  std::size_t length_;
  ddp::Stag stag_;
};

class SoftPd final : public Pd {
 public:
  SoftPd(RegionTable& table, std::uint32_t number) : table_(table), number_(number) {}
  Result<std::unique_ptr<Mr>> reg_mr(void* addr, std::size_t length, Access access) override;
  std::uint32_t number() const { return number_; }

 private:
  RegionTable& table_;
  const std::uint32_t number_;
};

}  // namespace weft::verbs::soft
