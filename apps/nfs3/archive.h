#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>

#include "apps/nfs3/types.h"
#include "rpcrdma/xdr/xdr.h"

// codec.cc and mount.cc describe each message once for both directions: a function fields(archive, value) names the
// fields in order. A ParseArchive fills the value, an EmitArchive reads it. Private to this folder.
namespace weft::nfs3 {

class ParseArchive {
 public:
  static constexpr bool kParsing = true;
  template <typename T>
  using Ref = T&;

  explicit ParseArchive(rpcrdma::xdr::XdrReader& reader, ItemForm form = ItemForm::kInline)
      : reader_(reader), form_(form) {}

  bool num(std::uint32_t& value) { return reader_.u32(value); }
  bool num(std::uint64_t& value) { return reader_.u64(value); }
  bool flag(bool& value) { return reader_.boolean(value); }

  // choice: an enumeration with values first..last and no gap.
  template <typename E>
  bool choice(E& value, E first, E last) {
    std::uint32_t number = 0;
    if (!reader_.u32(number) || number < static_cast<std::uint32_t>(first) || number > static_cast<std::uint32_t>(last))
      return false;
    value = static_cast<E>(number);
    return true;
  }
  // any_choice: an enumeration whose unknown values are kept.
  template <typename E>
  bool any_choice(E& value) {
    std::uint32_t number = 0;
    if (!reader_.u32(number)) return false;
    value = static_cast<E>(number);
    return true;
  }
  // present: the discriminator of an optional.
  template <typename T>
  bool present(std::optional<T>& value, bool& is_present) {
    if (!reader_.boolean(is_present)) return false;
    if (is_present) {
      value.emplace();
    } else {
      value.reset();
    }
    return true;
  }
  bool text(std::string& value, std::size_t max_len) {
    std::string_view view;
    if (!reader_.string(view, static_cast<std::uint32_t>(max_len))) return false;
    value.assign(view);
    return true;
  }
  bool handle(NfsFh3& value) {
    ConstBytes octets;
    return reader_.opaque(octets, kMaxFh) && value.assign(octets);
  }
  bool fixed(Verf& value) {
    ConstBytes octets;
    if (!reader_.opaque_fixed(value.size(), octets)) return false;
    std::copy(octets.begin(), octets.end(), value.begin());
    return true;
  }
  bool item(Item& value, std::size_t max_len) {
    if (form_ == ItemForm::kReduced) {
      value.data = {};
      return reader_.u32(value.len) && value.len <= max_len;
    }
    if (!reader_.opaque(value.data, static_cast<std::uint32_t>(max_len))) return false;
    value.len = static_cast<std::uint32_t>(value.data.size());
    return true;
  }

 private:
  rpcrdma::xdr::XdrReader& reader_;
  ItemForm form_;
};

class EmitArchive {
 public:
  static constexpr bool kParsing = false;
  template <typename T>
  using Ref = const T&;

  explicit EmitArchive(rpcrdma::xdr::XdrWriter& writer, ItemForm form = ItemForm::kInline)
      : writer_(writer), form_(form) {}

  bool num(std::uint32_t value) {
    writer_.u32(value);
    return true;
  }
  bool num(std::uint64_t value) {
    writer_.u64(value);
    return true;
  }
  bool flag(bool value) {
    writer_.boolean(value);
    return true;
  }
  template <typename E>
  bool choice(E value, E, E) {
    writer_.u32(static_cast<std::uint32_t>(value));
    return true;
  }
  template <typename E>
  bool any_choice(E value) {
    writer_.u32(static_cast<std::uint32_t>(value));
    return true;
  }
  template <typename T>
  bool present(const std::optional<T>& value, bool& is_present) {
    is_present = value.has_value();
    writer_.boolean(is_present);
    return true;
  }
  bool text(const std::string& value, std::size_t) {
    writer_.string(value);
    return true;
  }
  bool handle(const NfsFh3& value) {
    writer_.opaque(value.octets());
    return true;
  }
  bool fixed(const Verf& value) {
    writer_.opaque_fixed(value);
    return true;
  }
  bool item(const Item& value, std::size_t) {
    if (form_ == ItemForm::kReduced) {
      writer_.u32(value.len);
    } else {
      writer_.opaque(value.data);
    }
    return true;
  }

 private:
  rpcrdma::xdr::XdrWriter& writer_;
  ItemForm form_;
};

template <typename A, typename T>
using Ref = typename A::template Ref<T>;

}  // namespace weft::nfs3
