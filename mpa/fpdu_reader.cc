#include "mpa/fpdu_reader.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "mpa/crc32c.h"
#include "requirements/violates.h"

namespace weft::mpa {

namespace {

constexpr std::uint16_t kFpduptrMask = 0xfffc;  // MPA-4.2-06

}  // namespace

ConstBytes Ulpdu::view(std::size_t offset, std::size_t len, MutBytes scratch) const {
  assert(offset <= len_ && len <= len_ - offset);
  const std::size_t bare = kUlpduLengthLen + offset;
  if (len <= layout_.run_len(bare)) return fpdu_.subspan(layout_.stream_offset(bare), len);
  copy(offset, scratch.first(len));
  return scratch.first(len);
}

void Ulpdu::copy(std::size_t offset, MutBytes out) const {
  assert(offset <= len_ && out.size() <= len_ - offset);
  std::size_t bare = kUlpduLengthLen + offset;
  while (!out.empty()) {
    const std::size_t len = std::min(out.size(), layout_.run_len(bare));
    std::memcpy(out.data(), fpdu_.data() + layout_.stream_offset(bare), len);
    out = out.subspan(len);
    bare += len;
  }
}

std::size_t PartialFpdu::arrived_ulpdu_len() const {
  return std::min(layout.bare_len(arrived.size()) - kUlpduLengthLen, ulpdu_len);
}

FpduReader::Next FpduReader::next(Staging& staging) {
  if (error_) return *error_;
  const auto fpdu = partial(staging);
  if (!fpdu) return NeedMore{layout().stream_len(kUlpduLengthLen) - staging.pending().size()};
  const auto& [layout, ulpdu_len, octets] = *fpdu;
  if (violates("MPA-3-09", ulpdu_len == 0 || ulpdu_len > max_ulpdu_len_)) return fail(Error::kMarker);  // MPA-A-08
  const std::size_t bare_len = fpdu_len(ulpdu_len);
  const std::size_t len = layout.stream_len(bare_len);
  if (octets.size() < len) return NeedMore{len - octets.size()};  // MPA-6-04
  const std::size_t covered_len = len - kCrcLen;
  if (crc_ && violates("MPA-4.4-20",
                       crc32c(octets.first(covered_len)) != parse_crc(octets.subspan(covered_len).first<kCrcLen>())))
    return fail(Error::kCrc);
  // Markers are checked after the CRC: if both are wrong, the CRC is reported (MPA-A-10).
  for (std::size_t i = 0; i < layout.num_before(bare_len - 1); ++i) {
    if (!marker_fits(layout, i, octets.subspan(layout.marker_offset(i)).first<kMarkerLen>()))
      return fail(Error::kMarker);
  }
  staging.consume(len);
  position_ += len;
  return Ulpdu(octets, layout, ulpdu_len);
}

std::optional<PartialFpdu> FpduReader::partial(const Staging& staging) const {
  const ConstBytes octets = staging.pending();
  const MarkerLayout layout = this->layout();
  const std::size_t length_end = layout.stream_len(kUlpduLengthLen);
  if (error_ || octets.size() < length_end) return std::nullopt;
  return PartialFpdu{layout, static_cast<std::size_t>(octets[length_end - 2]) << 8 | octets[length_end - 1], octets};
}

Error FpduReader::fail(Error error) {
  error_ = error;
  return error;
}

bool marker_fits(const MarkerLayout& layout, std::size_t i, std::span<const std::uint8_t, kMarkerLen> marker) {
  return !violates("MPA-8-05", (parse_fpduptr(marker) & kFpduptrMask) != layout.fpduptr(i));
}

}  // namespace weft::mpa
