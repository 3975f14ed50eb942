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

bool XdrReader::u32(std::uint32_t& value) {
  ConstBytes b;
  if (!raw(4, b)) return false;
  value = std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | std::uint32_t{b[3]};
  return true;
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

namespace {

void put_u32(std::uint8_t* at, std::uint32_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 24);
  at[1] = static_cast<std::uint8_t>(value >> 16);
  at[2] = static_cast<std::uint8_t>(value >> 8);
  at[3] = static_cast<std::uint8_t>(value);
}

}  // namespace

std::uint8_t* XdrWriter::room(std::size_t len) {
  if (out_ != nullptr) {
    const std::size_t at = out_->size();
    out_->resize(at + len);
    return out_->data() + at;
  }
  assert(len <= buffer_.size() - len_);
  std::uint8_t* at = buffer_.data() + len_;
  len_ += len;
  return at;
}

void XdrWriter::u32(std::uint32_t value) {
  put_u32(room(4), value);
}

void XdrWriter::u64(std::uint64_t value) {
  std::uint8_t* at = room(8);
  put_u32(at, static_cast<std::uint32_t>(value >> 32));
  put_u32(at + 4, static_cast<std::uint32_t>(value));
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
    std::memcpy(room(value.size()), value.data(), value.size());
  }
}

void XdrWriter::zeros(std::size_t len) {
  if (len != 0) std::memset(room(len), 0, len);
}

void XdrWriter::patch_u32(std::size_t position, std::uint32_t value) {
  assert(position <= size() && size() - position >= 4);
  put_u32((out_ != nullptr ? out_->data() + start_ : buffer_.data()) + position, value);
}

}  // namespace weft::rpcrdma::xdr
