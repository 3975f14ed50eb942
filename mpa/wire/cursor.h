#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace weft {

// load_be reads a big-endian number at `at`. Octet by octet, compilers read and shift each one.
template <std::unsigned_integral T>
T load_be(const std::uint8_t* at) {
  T value = 0;
  std::memcpy(&value, at, sizeof(value));
  if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

// Reader takes big-endian fields off the front of a view. A call that would pass the end returns false and does not
// move the reader.
class Reader {
 public:
  explicit Reader(ConstBytes octets) : rest_(octets) {}

  [[nodiscard]] bool u8(std::uint8_t& out) { return number(out); }
  [[nodiscard]] bool u16(std::uint16_t& out) { return number(out); }
  [[nodiscard]] bool u32(std::uint32_t& out) { return number(out); }
  [[nodiscard]] bool u64(std::uint64_t& out) { return number(out); }

  [[nodiscard]] bool bytes(std::size_t len, ConstBytes& out) {
    if (len > rest_.size()) return false;
    out = rest_.first(len);
    rest_ = rest_.subspan(len);
    return true;
  }
  [[nodiscard]] bool skip(std::size_t len) {
    ConstBytes ignored;
    return bytes(len, ignored);
  }

  ConstBytes rest() const { return rest_; }
  bool empty() const { return rest_.empty(); }

 private:
  template <typename T>
  [[nodiscard]] bool number(T& out) {
    if (sizeof(T) > rest_.size()) return false;
    out = load_be<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return true;
  }

  ConstBytes rest_;
};

// Writer puts big-endian fields at the front of a view. A call that would pass the end returns false and writes
// nothing.
class Writer {
 public:
  explicit Writer(MutBytes out) : out_(out) {}

  [[nodiscard]] bool u8(std::uint8_t value) { return number(value); }
  [[nodiscard]] bool u16(std::uint16_t value) { return number(value); }
  [[nodiscard]] bool u32(std::uint32_t value) { return number(value); }
  [[nodiscard]] bool u64(std::uint64_t value) { return number(value); }

  [[nodiscard]] bool bytes(ConstBytes octets) {
    if (octets.size() > out_.size() - len_) return false;
    if (!octets.empty()) std::memcpy(out_.data() + len_, octets.data(), octets.size());
    len_ += octets.size();
    return true;
  }

  // The octets written so far.
  std::size_t len() const { return len_; }

 private:
  template <typename T>
  [[nodiscard]] bool number(T value) {
    if (sizeof(T) > out_.size() - len_) return false;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_[len_ + i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * (sizeof(T) - 1 - i)));
    len_ += sizeof(T);
    return true;
  }

  MutBytes out_;
  std::size_t len_ = 0;
};

}  // namespace weft
