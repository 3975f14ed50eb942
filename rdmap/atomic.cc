#include "rdmap/atomic.h"

#include <atomic>
#include <cassert>

#include "mpa/wire/cursor.h"

namespace weft::rdmap {

namespace {

constexpr std::uint32_t kAopCodeMask = 0x0f;

std::uint64_t fetch_add(std::uint64_t original, std::uint64_t add, std::uint64_t mask) {
  // Without their top bits no field can carry into the next. The top bits are then added without a carry.
  return ((original & ~mask) + (add & ~mask)) ^ ((original ^ add) & mask);
}

}  // namespace

std::optional<AtomicRequestHeader> parse_atomic_request_header(ConstBytes octets) {
  AtomicRequestHeader h;
  AtomicOperands& o = h.operands;
  Reader in(octets);
  std::uint32_t first = 0;
  if (!in.u32(first) || !in.u32(h.request_id) || !in.u32(h.stag.value) || !in.u64(h.to) || !in.u64(o.add_swap) ||
      !in.u64(o.add_swap_mask) || !in.u64(o.compare) || !in.u64(o.compare_mask) || !in.empty())
    return std::nullopt;
  h.aop_code = static_cast<std::uint8_t>(first & kAopCodeMask);
  if (is_atomic_op(h.aop_code)) o.op = static_cast<AtomicOp>(h.aop_code);
  return h;
}

std::array<std::uint8_t, kAtomicRequestHeaderLen> emit_atomic_request_header(const AtomicRequestHeader& h) {
  std::array<std::uint8_t, kAtomicRequestHeaderLen> octets;
  const AtomicOperands& o = h.operands;
  Writer out(octets);
  [[maybe_unused]] const bool fits = out.u32(h.aop_code & kAopCodeMask) && out.u32(h.request_id) &&
                                     out.u32(h.stag.value) && out.u64(h.to) && out.u64(o.add_swap) &&
                                     out.u64(o.add_swap_mask) && out.u64(o.compare) && out.u64(o.compare_mask);
  assert(fits);
  return octets;
}

std::optional<AtomicResponseHeader> parse_atomic_response_header(ConstBytes octets) {
  AtomicResponseHeader h;
  Reader in(octets);
  if (in.u32(h.request_id) && in.u64(h.original) && in.empty()) return h;
  return std::nullopt;
}

std::array<std::uint8_t, kAtomicResponseHeaderLen> emit_atomic_response_header(const AtomicResponseHeader& h) {
  std::array<std::uint8_t, kAtomicResponseHeaderLen> octets;
  Writer out(octets);
  [[maybe_unused]] const bool fits = out.u32(h.request_id) && out.u64(h.original);
  assert(fits);
  return octets;
}

std::uint64_t apply_atomic(const AtomicOperands& o, std::uint64_t original) {
  if (o.op == AtomicOp::kFetchAdd) return fetch_add(original, o.add_swap, o.add_swap_mask);
  const bool equal = (original & o.compare_mask) == (o.compare & o.compare_mask);
  return equal ? (original & ~o.add_swap_mask) | (o.add_swap & o.add_swap_mask) : original;
}

bool is_atomic_target(MutBytes target) {
  return reinterpret_cast<std::uintptr_t>(target.data()) % kAtomicLen == 0;
}

std::uint64_t execute_atomic(const AtomicOperands& operands, MutBytes target) {
  assert(target.size() == kAtomicLen && is_atomic_target(target));
  // The memory is the user's own, and the user may have a word of this type there. Wire data is never read in this way.
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(target.data()));
  std::uint64_t original = word.load();
  while (!word.compare_exchange_weak(original, apply_atomic(operands, original))) {
  }
  return original;
}

}  // namespace weft::rdmap
