#pragma once

// The state of rdmap-vectors.txt with RFC 7306 (S0+EXT), for the tests of Atomics and Immediate Data.

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/victim.h"
#include "tests/vectors/vector_file.h"

namespace weft::sim {

inline constexpr std::uint32_t kAtomicStag = 0xa3b4c50a;    // base 0x100, 64 octets, everything allowed
inline constexpr std::uint32_t kReadableStag = 0x2b3c4d02;  // base 0x40000, remote read only
inline constexpr std::uint32_t kOwnStag = 0x6f708106;       // base 0x8000, local only
inline constexpr std::uint32_t kRecvStag = 0x11;

// ExtVictim knows RFC 7306 and has the regions and receives of S0.
struct ExtVictim : Victim {
  explicit ExtVictim(std::size_t chunk = SIZE_MAX, bool rfc7306 = true) : Victim(chunk, Heard::kOneFpdu, rfc7306) {
    memory.add_simple(kAtomicStag, 7, 0x100, 64);
    memory.add_simple(kReadableStag, 7, 0x40000, 8192).remote_write = false;
    auto& own = memory.add_simple(kOwnStag, 7, 0x8000, 8192);
    own.remote_read = own.remote_write = false;
    memory.add_simple(kRecvStag, 7, 0, 1024);
    std::uint64_t addr = 0;
    for (const std::uint32_t len : {64u, 64u, 64u, 8u}) {
      recvs.post(100 + addr / 64, {{addr, len, ddp::Stag{kRecvStag}}});
      addr += 64;
    }
  }

  // The 64-bit word at tagged offset `to` of kAtomicStag.
  std::uint64_t word(std::uint64_t to = 0x100) {
    std::uint64_t value = 0;
    std::memcpy(&value, &memory.regions[kAtomicStag].octets[static_cast<std::size_t>(to - 0x100)], sizeof(value));
    return value;
  }
  void set_word(std::uint64_t value, std::uint64_t to = 0x100) {
    std::memcpy(&memory.regions[kAtomicStag].octets[static_cast<std::size_t>(to - 0x100)], &value, sizeof(value));
  }
  std::vector<Octets> snapshot() const {
    std::vector<Octets> all;
    for (const auto& [stag, region] : memory.regions) all.push_back(region.octets);
    return all;
  }
  rdmap::PostResult post(rdmap::SendWr wr) { return stream.post_send(std::move(wr)); }
};

inline rdmap::SendWr atomic_wr(std::uint64_t wr_id, rdmap::AtomicOperands operands, std::uint64_t to = 0x100,
                               std::uint32_t stag = kAtomicStag) {
  rdmap::SendWr wr;
  wr.wr_id = wr_id;
  wr.op = rdmap::SendOp::kAtomic;
  wr.sg_list = {{0x8000 + 8 * wr_id, 8, ddp::Stag{kOwnStag}}};
  wr.remote_stag = ddp::Stag{stag};
  wr.remote_to = to;
  wr.args = operands;
  return wr;
}
inline rdmap::AtomicOperands fetch_add(std::uint64_t add, std::uint64_t mask = 0) {
  return {rdmap::AtomicOp::kFetchAdd, add, mask, 0, ~std::uint64_t{0}};
}
inline rdmap::AtomicOperands cmp_swap(std::uint64_t compare, std::uint64_t swap) {
  return {rdmap::AtomicOp::kCmpSwap, swap, ~std::uint64_t{0}, compare, ~std::uint64_t{0}};
}
inline rdmap::SendWr read_wr(std::uint64_t wr_id, std::uint32_t len, std::uint64_t to = 0x40000,
                             std::uint32_t stag = kReadableStag) {
  rdmap::SendWr wr;
  wr.wr_id = wr_id;
  wr.op = rdmap::SendOp::kRdmaRead;
  wr.sg_list = {{0x8800, len, ddp::Stag{kOwnStag}}};
  wr.remote_stag = ddp::Stag{stag};
  wr.remote_to = to;
  return wr;
}
inline rdmap::SendWr immediate_wr(std::uint64_t wr_id, rdmap::ImmediateData data, bool solicited = false) {
  rdmap::SendWr wr;
  wr.wr_id = wr_id;
  wr.op = rdmap::SendOp::kImmediate;
  wr.solicited = solicited;
  wr.args = data;
  return wr;
}

// The octets of one record of rdmap-vectors.txt.
inline Octets vector_octets(const std::string& name, const std::string& key = "hex") {
  static const auto records = vectors::read_vector_file("tests/vectors/rdmap-vectors.txt");
  for (const auto& record : records)
    if (record.name == name) return vectors::from_hex(record.find(key).value());
  return {};
}
// An Atomic Request or Response with another MSN and Request Identifier.
inline Octets renumbered(Octets ulpdu, std::uint32_t msn, std::uint32_t request_id) {
  const std::size_t id_at = (ulpdu[1] & 0x0f) == 10 ? 22 : 18;
  for (std::size_t i = 0; i < 4; ++i) {
    ulpdu[10 + i] = static_cast<std::uint8_t>(msn >> (24 - 8 * i));
    ulpdu[id_at + i] = static_cast<std::uint8_t>(request_id >> (24 - 8 * i));
  }
  return ulpdu;
}
// Layer, type and code of a Terminate and its header bits; {} for any other ULPDU.
inline Octets terminate_of(const Octets& ulpdu) {
  if (ulpdu.size() < 22 || (ulpdu[1] & 0x0f) != 7) return {};
  return {ulpdu[18], ulpdu[19], ulpdu[20]};
}

}  // namespace weft::sim
