#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rpcrdma/binding.h"
#include "rpcrdma/xdr/xdr.h"

// Shared by the tests of bindings: XDR built word by word, and the three walks as values.
namespace weft::nfsulb::testing {

using Octets = std::vector<std::uint8_t>;
using rpcrdma::Walked;

class Xdr {
 public:
  Xdr& u32(std::uint32_t value) {
    rpcrdma::xdr::XdrWriter(octets_).u32(value);
    return *this;
  }
  Xdr& words(const std::vector<std::uint32_t>& values) {
    for (const std::uint32_t value : values) u32(value);
    return *this;
  }
  Xdr& u64(std::uint64_t value) {
    rpcrdma::xdr::XdrWriter(octets_).u64(value);
    return *this;
  }
  Xdr& fixed(std::size_t len) {
    rpcrdma::xdr::XdrWriter(octets_).opaque_fixed(Octets(len, 0x22));
    return *this;
  }
  Xdr& opaque(std::size_t len) {
    rpcrdma::xdr::XdrWriter(octets_).opaque(Octets(len, 0x11));
    return *this;
  }
  // The count of an opaque whose octets were taken out.
  Xdr& missing(std::uint32_t len) { return u32(len); }
  Xdr& add(const Xdr& other) {
    octets_.insert(octets_.end(), other.octets_.begin(), other.octets_.end());
    return *this;
  }
  std::size_t size() const { return octets_.size(); }
  const Octets& octets() const { return octets_; }

 private:
  Octets octets_;
};

struct WalkedArguments {
  Walked walked;
  std::vector<rpcrdma::EligibleItem> items;
};
inline WalkedArguments walk_arguments(const rpcrdma::Binding& binding, std::uint32_t procedure, const Octets& args,
                                      const std::vector<std::size_t>& reduced = {}) {
  WalkedArguments result;
  result.walked = binding.walk_arguments(procedure, args, reduced, result.items);
  return result;
}

struct WalkedResults {
  Walked walked;
  std::vector<std::optional<rpcrdma::EligibleItem>> items;
};
inline WalkedResults walk_results(const rpcrdma::Binding& binding, std::uint32_t procedure, const Octets& results,
                                  const std::vector<std::uint32_t>& reduced = {}) {
  WalkedResults result;
  result.walked = binding.walk_results(procedure, results, reduced, result.items);
  return result;
}

struct Bounded : rpcrdma::ReplyBound {
  Walked walked;
  bool idempotent;
};
inline Bounded bound_reply(const rpcrdma::Binding& binding, std::uint32_t procedure, const Octets& args,
                           const rpcrdma::ReplyLimits& limits = {}, const std::vector<std::size_t>& reduced = {}) {
  Bounded result{};
  result.walked = binding.bound_reply(procedure, args, reduced, limits, result);
  result.idempotent = binding.is_idempotent(procedure, args, reduced);
  return result;
}

}  // namespace weft::nfsulb::testing
