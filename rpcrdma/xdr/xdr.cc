#include "rpcrdma/xdr/xdr.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace weft::rpcrdma::xdr {

bool XdrReader::raw(std::size_t len, ConstBytes& value) {
  if (len > remaining()) return false;
  value = octets_.subspan(position_, len);
  position_ += len;
  return true;
}

bool XdrReader::skip(std::size_t len) {
  ConstBytes ignored;
  return raw(len, ignored);
}

bool XdrReader::i32(std::int32_t& value) {
  std::uint32_t word = 0;
  if (!u32(word)) return false;
  value = static_cast<std::int32_t>(word);
  return true;
}

bool XdrReader::u64(std::uint64_t& value) {
  if (remaining() < 8) return false;
  std::uint32_t high = 0;
  std::uint32_t low = 0;
  if (!u32(high) || !u32(low)) return false;
  value = std::uint64_t{high} << 32 | low;
  return true;
}

bool XdrReader::i64(std::int64_t& value) {
  std::uint64_t word = 0;
  if (!u64(word)) return false;
  value = static_cast<std::int64_t>(word);
  return true;
}

bool XdrReader::boolean(bool& value) {
  const std::size_t before = position_;
  std::uint32_t word = 0;
  if (!u32(word)) return false;
  if (word > 1) {
    position_ = before;
    return false;
  }
  value = word == 1;
  return true;
}

bool XdrReader::opaque_fixed(std::size_t len, ConstBytes& value) {
  if (len > remaining() || padding(len) > remaining() - len) return false;
  const ConstBytes pad = octets_.subspan(position_ + len, padding(len));
  if (mode_ == Padding::kZero && std::any_of(pad.begin(), pad.end(), [](std::uint8_t o) { return o != 0; })) {
    return false;
  }
  value = octets_.subspan(position_, len);
  position_ += len + pad.size();
  return true;
}

bool XdrReader::opaque(ConstBytes& value, std::uint32_t max_len) {
  const std::size_t before = position_;
  std::uint32_t len = 0;
  if (!u32(len)) return false;
  if (len > max_len || !opaque_fixed(len, value)) {
    position_ = before;
    return false;
  }
  return true;
}

bool XdrReader::string(std::string_view& value, std::uint32_t max_len) {
  ConstBytes octets;
  if (!opaque(octets, max_len)) return false;
  // Octets and char are the same objects seen through two types that may alias.
  value = std::string_view(reinterpret_cast<const char*>(octets.data()), octets.size());
  return true;
}

std::uint8_t* XdrWriter::grow(std::size_t len) {
  const std::size_t at = out_->size();
  out_->resize(at + len);
  return out_->data() + at;
}

void XdrWriter::u64(std::uint64_t value) {
  u32(static_cast<std::uint32_t>(value >> 32));
  u32(static_cast<std::uint32_t>(value));
}

void XdrWriter::opaque_fixed(ConstBytes value) {
  raw(value);
  zeros(padding(value.size()));
}

void XdrWriter::opaque(ConstBytes value) {
  assert(value.size() <= 0xffffffff);
  u32(static_cast<std::uint32_t>(value.size()));
  opaque_fixed(value);
}

void XdrWriter::string(std::string_view value) {
  opaque(ConstBytes(reinterpret_cast<const std::uint8_t*>(value.data()), value.size()));
}

void XdrWriter::raw(ConstBytes value) {
  if (out_ != nullptr) {
    out_->insert(out_->end(), value.begin(), value.end());
  } else if (!value.empty()) {
    std::memcpy(next(value.size()), value.data(), value.size());
  }
}

void XdrWriter::zeros(std::size_t len) {
  if (len != 0) std::memset(out_ == nullptr ? next(len) : grow(len), 0, len);
}

void XdrWriter::patch_u32(std::size_t position, std::uint32_t value) {
  assert(position <= size() && size() - position >= 4);
  XdrWriter(MutBytes((out_ != nullptr ? out_->data() + start_ : buffer_.data()) + position, 4)).u32(value);
}

}  // namespace weft::rpcrdma::xdr
