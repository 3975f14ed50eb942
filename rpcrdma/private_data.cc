#include "rpcrdma/private_data.h"

#include <algorithm>

#include "requirements/violates.h"

namespace weft::rpcrdma {

namespace {

constexpr std::array<std::uint8_t, 4> kIdentifier = {0xf6, 0xab, 0x0e, 0x18};
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kRemoteInvalidate = 0x01;
constexpr std::size_t kUnit = 1024;

constexpr std::size_t decode_size(std::uint8_t code) {
  return (std::size_t{code} + 1) * kUnit;
}
constexpr std::uint8_t encode_size(std::size_t size) {
  return static_cast<std::uint8_t>(std::clamp(size, kDefaultInline, kMaxInline) / kUnit - 1);
}

}  // namespace

PrivateData parse_private_data(ConstBytes octets) {
  // R1-4.3.2-11: providers may leave words of their own in front, so any offset counts.
  const auto found = std::search(octets.begin(), octets.end(), kIdentifier.begin(), kIdentifier.end());
  const ConstBytes data(found, octets.end());
  if (violates("R1-4.3.2-12", data.size() < kPrivateDataLen)) return {};
  if (violates("R1-4.3.2-10", data[4] != kVersion)) return {};
  // R1-4.3.2-06: the other bits of octet 5 are reserved.
  return {(data[5] & kRemoteInvalidate) != 0, decode_size(data[6]), decode_size(data[7])};
}

std::array<std::uint8_t, kPrivateDataLen> emit_private_data(const PrivateData& data) {
  return {kIdentifier[0],
          kIdentifier[1],
          kIdentifier[2],
          kIdentifier[3],
          kVersion,
          data.remote_invalidate ? kRemoteInvalidate : std::uint8_t{0},  // R1-4.3.2-05
          encode_size(data.send_size),
          encode_size(data.receive_size)};
}

}  // namespace weft::rpcrdma
