#include "mpa/fpdu_reader.h"

#include "mpa/crc32c.h"

namespace weft::mpa {

FpduReader::Next FpduReader::next(Staging& staging) {
  if (error_) return *error_;
  const ConstBytes octets = staging.pending();
  if (octets.size() < kUlpduLengthLen) return NeedMore{kUlpduLengthLen - octets.size()};
  const std::size_t ulpdu_len = static_cast<std::size_t>(octets[0]) << 8 | octets[1];
  if (ulpdu_len == 0 || ulpdu_len > max_ulpdu_len_) {  // MPA-3-09, notes A-08
    error_ = Error::kMarker;
    return *error_;
  }
  const std::size_t len = fpdu_len(ulpdu_len);
  if (octets.size() < len) return NeedMore{len - octets.size()};  // MPA-6-04
  const std::size_t covered_len = len - kCrcLen;
  if (crc_ && crc32c(octets.first(covered_len)) != parse_crc(octets.subspan(covered_len).first<kCrcLen>())) {
    error_ = Error::kCrc;  // MPA-4.4-20
    return *error_;
  }
  staging.consume(len);
  return Ulpdu{octets.subspan(kUlpduLengthLen, ulpdu_len)};
}

}  // namespace weft::mpa
