#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "mpa/startup_frame.h"

namespace weft::verbs::soft {

// FrameCutter finds the MPA frames in the octets of one direction and makes a packet of each, of which it keeps the
// front. A frame that comes in pieces gives a packet for each piece. It follows a stream from its start that is
// well-formed: the octets were sent by a Stream, or a Stream reads them. It copies only what it keeps.
class FrameCutter {
 public:
  struct Limits {
    std::size_t tagged = 0;       // octets kept of an FPDU that begins a message in the tagged model; 0: all
    std::size_t tagged_more = 0;  // of the further FPDUs of such a message
    std::size_t other = 0;        // of other frames
  };
  // A packet: its kept octets, which may be swapped out, and the number that it had. is_cut: the capture lacks octets
  // of it, and none of its message before it.
  using Put = std::function<void(std::vector<std::uint8_t>& kept, std::size_t len, bool is_cut)>;
  static constexpr std::size_t kMaxPacket = 65000;  // octets; IP has room for no more than 65535 with its headers

  FrameCutter(const Limits& limits, Put put) : limits_(limits), put_(std::move(put)) {}

  // The direction has Markers: the receiver's startup frame says so. Known before the first FPDU.
  void set_markers(bool markers) { markers_ = markers; }
  // Whether the startup frame is complete, and whether it asks for Markers in the other direction.
  std::optional<bool> wants_markers() const { return wants_markers_; }

  // add takes the next octets. end_turn: no more octets come now, so a part of a frame becomes a packet.
  void add(ConstBytes octets);
  void end_turn() { flush(); }

 private:
  // The front of a frame that its length and kind are read from, at most with a Marker.
  static constexpr std::size_t kHeadLen = mpa::kStartupHeaderLen;

  void look_at_head();
  std::size_t head_len() const;
  std::size_t limit() const;
  void flush();

  const Limits limits_;
  const Put put_;
  bool markers_ = false;
  std::optional<bool> wants_markers_;
  std::uint64_t position_ = 0;  // octets of Full Operation before the frame
  std::array<std::uint8_t, kHeadLen> head_{};
  std::size_t seen_ = 0;  // octets of the frame so far
  std::optional<std::size_t> frame_len_;
  bool tagged_ = false;
  bool continues_ = false;               // the FPDU goes on with a message of the tagged model
  std::array<bool, 16> is_inside_ = {};  // by opcode: such a message is under way
  bool was_cut_ = false;                 // a packet of the frame was cut
  std::vector<std::uint8_t> kept_;       // of the packet
  std::size_t packet_len_ = 0;
};

}  // namespace weft::verbs::soft
