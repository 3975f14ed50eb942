#pragma once

#include <vector>

#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "nfsulb/testing/octets.h"

// COMPOUNDs built by hand, for tests.
namespace weft::nfsulb::testing {

inline constexpr std::uint32_t kCompound = 1;

enum Op : std::uint32_t {
  kOpCreate = 6,
  kOpGetattr = 9,
  kOpGetfh = 10,
  kOpLookup = 15,
  kOpOpen = 18,
  kOpPutfh = 22,
  kOpRead = 25,
  kOpReaddir = 26,
  kOpReadlink = 27,
  kOpRemove = 28,
  kOpRename = 29,
  kOpSecinfo = 33,
  kOpWrite = 38,
  kOpCreateSession = 43,
  kOpGetdeviceinfo = 47,
  kOpLayoutget = 50,
  kOpSequence = 53,
  kOpReadPlus = 68,
  kOpWriteSame = 70,
  kOpSetxattr = 73,
};

inline const rpcrdma::Binding& nfs4() {
  return *find_binding(kNfsProgram, kNfsV4);
}

inline Xdr op(std::uint32_t number, const Xdr& rest = {}) {
  return Xdr().u32(number).add(rest);
}
inline Xdr compound_args(std::uint32_t minor_version, const std::vector<Xdr>& operations) {
  Xdr args = Xdr().opaque(5).u32(minor_version).u32(static_cast<std::uint32_t>(operations.size()));
  for (const Xdr& operation : operations) args.add(operation);
  return args;
}
inline Xdr compound_res(std::uint32_t status, const std::vector<Xdr>& operations) {
  Xdr results = Xdr().u32(status).opaque(5).u32(static_cast<std::uint32_t>(operations.size()));
  for (const Xdr& operation : operations) results.add(operation);
  return results;
}

// Arguments.
inline Xdr putfh() {
  return op(kOpPutfh, Xdr().opaque(28));
}
inline Xdr lookup() {
  return op(kOpLookup, Xdr().opaque(3));
}
inline Xdr getattr(const std::vector<std::uint32_t>& bitmap) {
  return op(kOpGetattr, Xdr().u32(static_cast<std::uint32_t>(bitmap.size())).words(bitmap));
}
inline Xdr read(std::uint32_t count) {
  return op(kOpRead, Xdr().fixed(16).u64(0).u32(count));
}
// WRITE up to the count of its data.
inline Xdr write(std::uint32_t count) {
  return op(kOpWrite, Xdr().fixed(16).u64(0).u32(0).missing(count));
}
inline Xdr sequence() {
  return op(kOpSequence, Xdr().fixed(16).words({1, 2, 3, 0}));
}

// Results.
inline Xdr ok(std::uint32_t number, const Xdr& rest = {}) {
  return op(number, Xdr().u32(0).add(rest));
}
inline Xdr failed(std::uint32_t number, std::uint32_t status) {
  return op(number, Xdr().u32(status));
}
// READ and READLINK up to the count of their data.
inline Xdr read_ok(std::uint32_t count) {
  return ok(kOpRead, Xdr().u32(1).missing(count));
}
inline Xdr readlink_ok(std::uint32_t count) {
  return ok(kOpReadlink, Xdr().missing(count));
}

}  // namespace weft::nfsulb::testing
