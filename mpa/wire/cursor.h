#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace weft {

// big_endian turns a number of this machine into a big-endian one, and back.
template <std::unsigned_integral T>
constexpr T big_endian(T value) {
  if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

// load_be reads a big-endian number at `at`, store_be writes one. Octet by octet, compilers move and shift each one.
template <std::unsigned_integral T>
T load_be(const std::uint8_t* at) {
  T value = 0;
  std::memcpy(&value, at, sizeof(value));
  return big_endian(value);
}
template <std::unsigned_integral T>
void store_be(std::uint8_t* at, T value) {
  value = big_endian(value);
  std::memcpy(at, &value, sizeof(value));
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
    store_be(out_.data() + len_, value);
    len_ += sizeof(T);
    return true;
  }

  MutBytes out_;
  std::size_t len_ = 0;
};

}  // namespace weft
