#include "tests/ulb_oracle/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace weft::ulb_oracle {

using nfsulb::Kind;
using nfsulb::Type;
using nfsulb::testing::Walked;
using rpcrdma::xdr::round_up;
using rpcrdma::xdr::XdrReader;

namespace {

constexpr std::size_t kMaxWords = 3000;  // of a value: long chains of optional-data end there
constexpr std::size_t kMaxOctets = 20000;

}  // namespace

struct Operations {
  using Ops = XDR::xdr_ops;
  static int32_t* no_inline(XDR*, u_int) { return nullptr; }
  static u_int no_position(XDR*) { return 0; }
  static bool_t no_set_position(XDR*, u_int) { return FALSE; }
  static void no_destroy(XDR*) {}
  static bool_t no_control(XDR*, int, void*) { return FALSE; }
  static bool_t no_putlong(XDR*, const long*) { return FALSE; }
  static bool_t no_putbytes(XDR*, const char*, u_int) { return FALSE; }
  static bool_t no_getlong(XDR*, long*) { return FALSE; }
  static bool_t no_getbytes(XDR*, char*, u_int) { return FALSE; }

  static const Ops* decode() {
    static const Ops ops = {&RandomStream::getlong,
                            &no_putlong,
                            &RandomStream::getbytes,
                            &no_putbytes,
                            &no_position,
                            &no_set_position,
                            &no_inline,
                            &no_destroy,
                            &no_control};
    return &ops;
  }
  static const Ops* encode() {
    static const Ops ops = {&no_getlong,      &OutStream::putlong, &no_getbytes, &OutStream::putbytes, &no_position,
                            &no_set_position, &no_inline,          &no_destroy,  &no_control};
    return &ops;
  }
};

RandomStream::RandomStream(std::uint64_t seed, Words words) : random_(seed), words_(std::move(words)) {
  xdr_.x_op = XDR_DECODE;
  xdr_.x_ops = Operations::decode();
  xdr_.x_private = this;
}

bool_t RandomStream::getlong(XDR* xdr, long* value) {
  RandomStream& self = of(xdr);
  if (self.num_words_ >= kMaxWords) return FALSE;
  if (self.num_words_ < self.words_.first.size()) {
    *value = static_cast<long>(self.words_.first[self.num_words_++]);
    return TRUE;
  }
  ++self.num_words_;
  const std::uint64_t kind = self.random_() % 100;
  if (kind < 60) {
    *value = static_cast<long>(self.random_() % 4);
  } else if (kind < 90) {
    *value = static_cast<long>(self.random_() % 12);
  } else if (kind < 97 && !self.words_.special.empty()) {
    *value = static_cast<long>(self.words_.special[self.random_() % self.words_.special.size()]);
  } else {
    *value = static_cast<long>(self.random_() % (self.words_.longest + 1));
  }
  return TRUE;
}

bool_t RandomStream::getbytes(XDR* xdr, char* octets, u_int len) {
  RandomStream& self = of(xdr);
  self.num_octets_ += len;
  if (self.num_octets_ > kMaxOctets) return FALSE;
  // No zeros, which would end a string.
  std::generate_n(octets, len, [&self] { return static_cast<char>(self.random_() % 255 + 1); });
  return TRUE;
}

OutStream::OutStream() {
  xdr_.x_op = XDR_ENCODE;
  xdr_.x_ops = Operations::encode();
  xdr_.x_private = this;
}

bool_t OutStream::putlong(XDR* xdr, const long* value) {
  const auto word = static_cast<std::uint32_t>(*value);
  rpcrdma::xdr::XdrWriter(of(xdr).octets_).u32(word);
  return TRUE;
}

bool_t OutStream::putbytes(XDR* xdr, const char* octets, u_int len) {
  OutStream& self = of(xdr);
  if (len > 0) self.offsets_.emplace(octets, self.octets_.size());
  self.octets_.insert(self.octets_.end(), octets, octets + len);
  return TRUE;
}

bool Arms::saw(const Type& type, const Octets& octets) {
  XdrReader reader(octets);
  return read(type, reader) && reader.at_end();
}

bool Arms::read_union(const Type& type, XdrReader& reader) {
  std::uint32_t value = 0;
  if (!reader.u32(value)) return false;
  for (const nfsulb::Arm& arm : type.arms) {
    if (arm.value != value) continue;
    seen_.insert(&arm);
    return read(*arm.type, reader);
  }
  if (type.element == nullptr) return false;
  seen_.insert(&type);
  return read(*type.element, reader);
}

bool Arms::read(const Type& type, XdrReader& reader) {
  std::uint32_t count = 0;
  ConstBytes octets;
  switch (type.kind) {
    case Kind::kFixed: return reader.skip(type.max);
    case Kind::kOpaque:
    case Kind::kEligible: return reader.opaque(octets, type.max);
    case Kind::kBounded: return read(*type.element, reader);
    case Kind::kUnion: return read_union(type, reader);
    case Kind::kOperations: return false;
    case Kind::kList:
      for (bool more = true;;) {
        if (!reader.boolean(more)) return false;
        if (!more) return true;
        if (!read(*type.element, reader)) return false;
      }
    case Kind::kArray:
      if (!reader.u32(count)) return false;
      while (count-- > 0) {
        if (!read(*type.element, reader)) return false;
      }
      return true;
    case Kind::kStruct: break;
  }
  return std::ranges::all_of(type.fields, [&](const Type* field) { return read(*field, reader); });
}

std::size_t Arms::unseen(const Type& type, const char* name) const {
  std::size_t count = 0;
  for (const nfsulb::Arm& arm : type.arms) {
    if (!seen_.contains(&arm)) {
      std::cerr << name << ": arm " << arm.value << " of a union was never seen\n";
      ++count;
    }
    count += unseen(*arm.type, name);
  }
  if (type.kind == Kind::kUnion && type.element != nullptr && !seen_.contains(&type)) {
    std::cerr << name << ": the default of a union was never seen\n";
    ++count;
  }
  if (type.element != nullptr) count += unseen(*type.element, name);
  for (const Type* field : type.fields) count += unseen(*field, name);
  return count;
}

namespace {

constexpr std::size_t kMaxTakenOut = 5;

struct Reduced {
  Octets octets;
  std::vector<std::size_t> positions;  // of the missing ones
  std::vector<std::size_t> offsets;    // of all, in `octets`
};

bool is_out(std::size_t index, unsigned subset) {
  return index < kMaxTakenOut && (subset >> index & 1) != 0;
}

Reduced reduce(const OutStream& message, const std::vector<Item>& items, unsigned subset) {
  Reduced reduced;
  std::size_t done = 0;
  const Octets& whole = message.octets();
  const auto copy_to = [&](std::size_t end) {
    reduced.octets.insert(reduced.octets.end(), whole.begin() + static_cast<std::ptrdiff_t>(done),
                          whole.begin() + static_cast<std::ptrdiff_t>(end));
    done = end;
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::size_t offset = message.offset_of(items[i].octets);
    copy_to(offset);
    reduced.offsets.push_back(reduced.octets.size());
    if (!is_out(i, subset)) continue;
    reduced.positions.push_back(offset);
    done += round_up(items[i].len);
  }
  copy_to(whole.size());
  return reduced;
}

}  // namespace

void expect_arguments(const rpcrdma::Binding& binding, std::uint32_t procedure, const OutStream& message,
                      const std::vector<Item>& items) {
  for (unsigned subset = 0; subset < 1u << std::min(items.size(), kMaxTakenOut); ++subset) {
    const Reduced reduced = reduce(message, items, subset);
    const auto walk = nfsulb::testing::walk_arguments(binding, procedure, reduced.octets, reduced.positions);
    ASSERT_EQ(walk.walked, Walked::kWhole);
    ASSERT_EQ(walk.items.size(), items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(walk.items[i].position, message.offset_of(items[i].octets));
      EXPECT_EQ(walk.items[i].offset, reduced.offsets[i]);
      EXPECT_EQ(walk.items[i].len, items[i].len);
      EXPECT_EQ(walk.items[i].reduced, is_out(i, subset));
    }
  }
}

void expect_results(const rpcrdma::Binding& binding, std::uint32_t procedure, const OutStream& message,
                    const std::vector<Item>& items, const std::vector<int>& entries) {
  for (unsigned subset = 0; subset < 1u << std::min(items.size(), kMaxTakenOut); ++subset) {
    const Reduced reduced = reduce(message, items, subset);
    std::vector<std::uint32_t> brought;
    for (const int entry : entries) {
      const auto index = static_cast<std::size_t>(entry);
      brought.push_back(entry >= 0 && is_out(index, subset) ? items[index].len : 0);
    }
    const auto walk = nfsulb::testing::walk_results(binding, procedure, reduced.octets, brought);
    ASSERT_EQ(walk.walked, Walked::kWhole);
    ASSERT_EQ(walk.items.size(), entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      ASSERT_EQ(walk.items[i].has_value(), entries[i] >= 0);
      if (entries[i] < 0) continue;
      const auto index = static_cast<std::size_t>(entries[i]);
      EXPECT_EQ(walk.items[i]->position, message.offset_of(items[index].octets));
      EXPECT_EQ(walk.items[i]->offset, reduced.offsets[index]);
      EXPECT_EQ(walk.items[i]->len, items[index].len);
      EXPECT_EQ(walk.items[i]->reduced, is_out(index, subset));
    }
  }
}

void expect_bound(const rpcrdma::Binding& binding, std::uint32_t procedure, const Octets& args, const Octets& results) {
  const auto bound = nfsulb::testing::bound_reply(binding, procedure, args, kLimits);
  ASSERT_EQ(bound.walked, Walked::kWhole);
  const auto walk = nfsulb::testing::walk_results(binding, procedure, results);
  ASSERT_EQ(walk.walked, Walked::kWhole);
  std::size_t rest = results.size();
  std::size_t next = 0;
  for (const auto& item : walk.items) {
    ASSERT_LT(next, bound.items.size());
    if (item) {
      EXPECT_LE(item->len, bound.items[next]);
      rest -= round_up(item->len);
    }
    ++next;
  }
  EXPECT_LE(rest, bound.rest);
}

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* given = std::getenv("WEFT_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20260101;
    std::cout << "WEFT_SEED=" << seed << "\n";
    return seed;
  }();
  return value;
}

}  // namespace weft::ulb_oracle
