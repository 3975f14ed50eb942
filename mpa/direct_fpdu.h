#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "mpa/crc32c.h"
#include "mpa/error.h"
#include "mpa/fpdu_reader.h"
#include "mpa/marker.h"
#include "mpa/staging.h"

namespace weft::mpa {

// DirectFpdu receives one FPDU whose payload goes from the socket straight into its memory, without the Markers
// (placement `direct`). The octets are hashed in place as they arrive. They are verified only at the end, as in every
// receiver that places early. RFC 5044 section 6 wants verification before placement.
//
//   made from a PartialFpdu whose header has been checked -> append_buffers, on_rx until payload_done -> finish
class DirectFpdu {
 public:
  // fpdu: the part of the FPDU in staging, at least the first header_len octets of its ULPDU. payload: the memory of
  // its whole payload, in order. Consumes everything in staging up to the end of the payload.
  DirectFpdu(const PartialFpdu& fpdu, std::size_t header_len, bool crc, Staging& staging,
             std::span<const MutBytes> payload);

  // The number of payload octets that have arrived.
  std::size_t payload_received() const;
  bool payload_done() const { return received_ == payload_end_; }

  // append_buffers appends the buffers for the octets up to the payload's end. rest: the memory of the missing payload,
  // found anew. This object owns the buffers of the Markers.
  void append_buffers(std::span<const MutBytes> rest, std::vector<MutBytes>& out);
  // The next octets have arrived. They fill the buffers of append_buffers from front to back.
  void on_rx(ConstBytes octets);

  struct Verified {
    std::size_t stream_len = 0;  // length of the FPDU on the wire, for FpduReader::skip
  };
  // finish verifies the FPDU once staging holds its PAD and CRC, and consumes them. Precondition: payload_done().
  std::variant<NeedMore, Verified, Error> finish(Staging& staging);

 private:
  MutBytes marker_slot(const MarkerLayout::Run& run);
  void keep_markers(ConstBytes octets);

  MarkerLayout layout_;
  std::size_t bare_len_;       // the FPDU without Markers
  std::size_t payload_begin_;  // bare offset
  std::size_t payload_end_;    // stream offset
  std::size_t received_ = 0;   // stream octets taken in
  bool crc_in_use_;
  Crc32c crc_;
  std::vector<std::uint8_t> markers_;  // as received, one after the other
};

}  // namespace weft::mpa
