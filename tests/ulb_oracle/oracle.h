#pragma once

#include <rpc/rpc.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "nfsulb/bindings.h"
#include "nfsulb/schema.h"
#include "nfsulb/testing/octets.h"

// The oracle: the encoders that rpcgen makes of the RFCs' own data descriptions. It draws random values: a routine of
// rpcgen decodes a stream that makes up its words as it is read. The oracle encodes the values again. The walkers of
// nfsulb have to find the same values in the octets.
namespace weft::ulb_oracle {

using nfsulb::testing::Octets;

template <typename T>
using Proc = bool_t (*)(XDR*, T*);

// Words decides the numbers that a stream makes up. Some become counts, some discriminants; the stream does not know
// which.
struct Words {
  std::vector<std::uint32_t> first;    // the first ones, as given
  std::vector<std::uint32_t> special;  // discriminants that small numbers do not reach
  std::uint32_t longest = 3000;        // of the longer counts, now and then
};

// RandomStream is an XDR stream to decode from.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, Words words);
  RandomStream(const RandomStream&) = delete;
  XDR* xdr() { return &xdr_; }

 private:
  static RandomStream& of(XDR* xdr) { return *static_cast<RandomStream*>(xdr->x_private); }
  static bool_t getlong(XDR* xdr, long* value);
  static bool_t getbytes(XDR* xdr, char* octets, u_int len);
  friend struct Operations;

  std::mt19937_64 random_;
  Words words_;
  std::size_t num_words_ = 0;
  std::size_t num_octets_ = 0;
  XDR xdr_{};
};

// OutStream is one to encode to. It remembers where the octets of each opaque went, by their address.
class OutStream {
 public:
  OutStream();
  OutStream(const OutStream&) = delete;
  XDR* xdr() { return &xdr_; }
  const Octets& octets() const { return octets_; }
  std::size_t offset_of(const void* value) const { return offsets_.at(value); }

 private:
  static OutStream& of(XDR* xdr) { return *static_cast<OutStream*>(xdr->x_private); }
  static bool_t putlong(XDR* xdr, const long* value);
  static bool_t putbytes(XDR* xdr, const char* octets, u_int len);
  friend struct Operations;

  Octets octets_;
  std::map<const void*, std::size_t> offsets_;
  XDR xdr_{};
};

// Value is a C value made by rpcgen's routine for its type, and freed by it.
template <typename T>
class Value {
 public:
  explicit Value(Proc<T> proc) : proc_(proc) {}
  Value(const Value&) = delete;
  ~Value() { clear(); }
  // draw makes up a new value; false if these words make none.
  bool draw(std::uint64_t seed, const Words& words) {
    clear();
    RandomStream stream(seed, words);
    return proc_(stream.xdr(), &value_) == TRUE;
  }
  T& get() { return value_; }
  T* operator->() { return &value_; }

 private:
  void clear() {
    XDR free{};
    free.x_op = XDR_FREE;
    proc_(&free, &value_);
    value_ = T{};
  }

  Proc<T> proc_;
  T value_{};
};

template <typename T>
bool encode(OutStream& out, Proc<T> proc, T& value) {
  return proc(out.xdr(), &value) == TRUE;
}
template <typename T>
std::size_t encoded_len(Proc<T> proc, T& value) {
  OutStream out;
  return encode(out, proc, value) ? out.octets().size() : 0;
}

// Item: an eligible item of a value, by its own fields.
struct Item {
  const void* octets = nullptr;
  std::uint32_t len = 0;
};

// Arms: which arms of the schema's unions have been seen, so that none of them is left unproven.
class Arms {
 public:
  // saw reads octets of this type, all of them; false if they are not.
  bool saw(const nfsulb::Type& type, const Octets& octets);
  // unseen returns the number of arms below the type that saw has not met, and prints their names.
  std::size_t unseen(const nfsulb::Type& type, const char* name) const;

 private:
  bool read(const nfsulb::Type& type, rpcrdma::xdr::XdrReader& reader);
  bool read_union(const nfsulb::Type& type, rpcrdma::xdr::XdrReader& reader);

  std::set<const void*> seen_;
};

// The walker against one message. `items` are all items, at `offsets`. Every subset of up to five of them is taken out.
// `entries` of results: for each READ operation, the index of its item, -1 for none.
void expect_arguments(const rpcrdma::Binding& binding, std::uint32_t procedure, const OutStream& message,
                      const std::vector<Item>& items);
void expect_results(const rpcrdma::Binding& binding, std::uint32_t procedure, const OutStream& message,
                    const std::vector<Item>& items, const std::vector<int>& entries);
// Compares the bound of the Reply with a possible Reply.
void expect_bound(const rpcrdma::Binding& binding, std::uint32_t procedure, const Octets& args, const Octets& results);

// The limits of the Calls and Replies here.
inline constexpr rpcrdma::ReplyLimits kLimits = {.max_text = 20480, .max_unbounded = 1 << 20, .max_reply = 0};

// The seed of all tests, from WEFT_SEED or the same each time; printed by the tests' main when one fails.
std::uint64_t seed();

}  // namespace weft::ulb_oracle
