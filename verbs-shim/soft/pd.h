#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/fleet.h"

namespace weft::verbs::soft {

class SoftPd final : public Pd {
 public:
  explicit SoftPd(Fleet& fleet) : fleet_(fleet), number_(fleet.core().next_number()) {}
  Result<std::unique_ptr<Mr>> reg_mr(void* addr, std::size_t length, Access access) override;
  Result<std::unique_ptr<Mw>> alloc_mw() override;
  Result<std::unique_ptr<Srq>> create_srq(const SrqAttr& attr) override;
  std::uint32_t number() const { return number_; }

 private:
  Fleet& fleet_;
  const std::uint32_t number_;
};

}  // namespace weft::verbs::soft
