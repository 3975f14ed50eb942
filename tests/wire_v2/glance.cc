#include "tests/wire_v2/glance.h"

#include <algorithm>
#include <variant>

#include "tests/wire_v2/decoder.h"

namespace weft::wire_v2 {

std::optional<std::uint32_t> version_of(const Bytes& octets) {
  constexpr std::size_t kVersionAt = 4;  // octets before rdma_vers
  if (octets.size() < kVersionAt + 4) return {};
  std::uint32_t version = 0;
  for (std::size_t i = kVersionAt; i < kVersionAt + 4; ++i) version = version << 8 | octets[i];
  return version;
}

bool is_allowed(const Bytes& octets, Profile profile) {
  return std::holds_alternative<Message>(decode(octets, profile));
}

std::optional<Profile> draft_of(const Bytes& octets) {
  if (version_of(octets) != 2) return {};
  const bool is_cel05 = is_allowed(octets, Profile::kCel05), is_wg07 = is_allowed(octets, Profile::kWg07);
  if (is_cel05 == is_wg07) return {};
  return is_cel05 ? Profile::kCel05 : Profile::kWg07;
}

bool is_mismatch(const Bytes& octets) {
  constexpr std::uint8_t kBody[] = {0, 0, 0, 4, 0, 0, 0, 11};  // RDMA2_ERROR, and the code
  return octets.size() == 20 && std::equal(std::begin(kBody), std::end(kBody), octets.begin() + 12);
}

bool is_probe(const Bytes& octets) {
  constexpr std::size_t kCallLen = 40;
  constexpr std::uint8_t kBody[] = {0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0};  // CALL, RPC version 2, program 0
  if (octets.size() < kCallLen) return false;
  return std::equal(std::begin(kBody), std::end(kBody), octets.end() - kCallLen + 4);
}

std::string hex(const Bytes& octets) {
  constexpr std::size_t kMost = 256;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < std::min(octets.size(), kMost); ++i) {
    text += kDigits[octets[i] >> 4];
    text += kDigits[octets[i] & 15];
  }
  return text + (octets.size() > kMost ? "..." : "");
}

}  // namespace weft::wire_v2
