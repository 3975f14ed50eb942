#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"

// XDR (RFC 4506): one cursor to read and one to write. All ONC RPC octets go through them.
namespace weft::rpcrdma::xdr {

// kNoLimit: only the available octets bound an opaque or string.
inline constexpr std::uint32_t kNoLimit = 0xffffffff;

// padding says how many octets of roundup follow an item of `len` octets (RFC 4506 section 4.10).
constexpr std::size_t padding(std::size_t len) {
  return (4 - (len & 3)) & 3;
}
// round_up is len with its roundup. len is at most SIZE_MAX - 3.
constexpr std::size_t round_up(std::size_t len) {
  return len + padding(len);
}

// Padding: whether a reader requires that roundup octets are zero (RFC 4506 section 3), or only that they are present,
// as the decoders of most peers do.
enum class Padding : std::uint8_t { kAny, kZero };

// XdrReader reads XDR items from octets that outlive it and the views it hands out. If the octets do not hold the item,
// each function returns false, and leaves the cursor and its result unchanged. The reader never reads outside the
// octets.
class XdrReader {
 public:
  explicit XdrReader(ConstBytes octets, Padding mode = Padding::kAny) : octets_(octets), mode_(mode) {}

  [[nodiscard]] bool u32(std::uint32_t& value) {
    if (remaining() < 4) return false;
    const std::uint8_t* at = octets_.data() + position_;
    value = std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | std::uint32_t{at[3]};
    position_ += 4;
    return true;
  }
  [[nodiscard]] bool i32(std::int32_t& value);
  [[nodiscard]] bool u64(std::uint64_t& value);
  [[nodiscard]] bool i64(std::int64_t& value);
  // boolean: 0 or 1. Any other value is an error (RFC 4506 section 4.4). Also reads optional-data discriminators.
  [[nodiscard]] bool boolean(bool& value);
  // opaque_fixed: `len` octets and their roundup (RFC 4506 section 4.9).
  [[nodiscard]] bool opaque_fixed(std::size_t len, ConstBytes& value);
  // opaque: a count of at most max_len, that many octets and their roundup (RFC 4506 section 4.10).
  [[nodiscard]] bool opaque(ConstBytes& value, std::uint32_t max_len = kNoLimit);
  // string: as opaque; the caller decides which octets a string may hold (RFC 4506 section 4.11).
  [[nodiscard]] bool string(std::string_view& value, std::uint32_t max_len = kNoLimit);
  // raw: `len` octets without roundup.
  [[nodiscard]] bool raw(std::size_t len, ConstBytes& value);
  // skip passes over `len` octets.
  [[nodiscard]] bool skip(std::size_t len);

  // Octets read so far, octets left, and a view of the octets left.
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return octets_.size() - position_; }
  ConstBytes rest() const { return octets_.subspan(position_); }
  bool at_end() const { return position_ == octets_.size(); }

 private:
  ConstBytes octets_;
  std::size_t position_ = 0;
  Padding mode_;
};

// XdrWriter writes XDR items: behind the contents of a vector, or from the beginning of a buffer with room for all
// items. The vector or the buffer outlives the writer.
class XdrWriter {
 public:
  explicit XdrWriter(std::vector<std::uint8_t>& out) : out_(&out), start_(out.size()) {}
  explicit XdrWriter(MutBytes buffer) : buffer_(buffer) {}

  void u32(std::uint32_t value) {
    std::uint8_t* at = out_ == nullptr ? next(4) : grow(4);
    at[0] = static_cast<std::uint8_t>(value >> 24);
    at[1] = static_cast<std::uint8_t>(value >> 16);
    at[2] = static_cast<std::uint8_t>(value >> 8);
    at[3] = static_cast<std::uint8_t>(value);
  }
  void i32(std::int32_t value) { u32(static_cast<std::uint32_t>(value)); }
  void u64(std::uint64_t value);
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  void boolean(bool value) { u32(value ? 1 : 0); }
  // opaque_fixed: the octets and zeros as roundup.
  void opaque_fixed(ConstBytes value);
  // opaque and string: count, octets, roundup. At most 2^32-1 octets.
  void opaque(ConstBytes value);
  void string(std::string_view value);
  // raw: the octets as they are. zeros: that many.
  void raw(ConstBytes value);
  void zeros(std::size_t len);

  // Octets that this writer has written.
  std::size_t size() const { return out_ != nullptr ? out_->size() - start_ : len_; }
  // patch_u32 overwrites a written word that begins `position` octets after this writer's start.
  void patch_u32(std::size_t position, std::uint32_t value);

 private:
  // next takes `len` octets of the buffer to fill; grow takes them of the vector.
  std::uint8_t* next(std::size_t len) {
    assert(len <= buffer_.size() - len_);
    std::uint8_t* at = buffer_.data() + len_;
    len_ += len;
    return at;
  }
  std::uint8_t* grow(std::size_t len);

  std::vector<std::uint8_t>* out_ = nullptr;
  std::size_t start_ = 0;
  MutBytes buffer_;
  std::size_t len_ = 0;  // octets of buffer_ that are written
};

}  // namespace weft::rpcrdma::xdr
