#pragma once

#include "apps/nfs3/types.h"

// Values with every optional part present, for the tests of this folder.
namespace weft::nfs3::testing {

inline NfsFh3 full_fh() {
  NfsFh3 fh;
  for (std::size_t i = 0; i < kMaxFh; ++i) fh.data[i] = static_cast<std::uint8_t>(0x40 + i);
  fh.len = kMaxFh;
  return fh;
}

inline NfsFh3 short_fh() {
  NfsFh3 fh;
  fh.data = {1, 2, 3, 4, 5};
  fh.len = 5;
  return fh;
}

inline Fattr3 fattr() {
  return {Ftype3::kReg, 0644,   3,         1000,     100,      0x1'0000'0001,  0x2000,
          {8, 1},       0xfeed, 0xabcdef1, {10, 11}, {12, 13}, {14, 999999999}};
}

inline WccData wcc() {
  return {WccAttr{4096, {1, 2}, {3, 4}}, fattr()};
}

inline Sattr3 sattr() {
  return {0755, 1, 2, 0x1'2345'6789, {TimeHow::kSetToClientTime, {5, 6}}, {TimeHow::kSetToClientTime, {7, 8}}};
}

inline Diropargs3 dirop(const char* name = "name") {
  return {full_fh(), name};
}

inline constexpr Verf kVerf = {0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4};

}  // namespace weft::nfs3::testing
