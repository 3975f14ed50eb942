#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "ddp/segment.h"

namespace weft::ddp {

// Cut is the range of a message that one segment carries, in octets.
struct Cut {
  std::uint32_t offset = 0;
  std::uint32_t len = 0;
  bool last = false;
};

// Segmenter cuts one message into segments, each as large as the current mulpdu allows (RFC 5041 section 5.2). It is a
// value: a copy is a bookmark, to return to when segments were discarded before they were sent.
template <typename Header, std::size_t kHeaderLen>
class Segmenter {
 public:
  // Makes a Segmenter that is already done.
  Segmenter() = default;
  // first: the header of the first segment, without L. message_len: octets, any number that 32 bits can hold
  // (DDP-5.2-02).
  Segmenter(const Header& first, std::uint32_t message_len) : header_(first), message_len_(message_len), done_(false) {}

  // Whether the L=1 segment has been cut. A message of no octets is one segment (DDP-5.2-11).
  bool done() const { return done_; }
  std::uint32_t message_len() const { return message_len_; }
  // The number of octets cut so far.
  std::uint32_t offset() const { return offset_; }

  struct Piece {
    Header header;
    Cut cut;
  };

  // next cuts the next segment: its header and its octets of the message. Precondition: !done(), mulpdu > kHeaderLen.
  Piece next(std::size_t mulpdu) {
    assert(!done_ && mulpdu > kHeaderLen);
    const std::uint32_t left = message_len_ - offset_;
    const auto len = static_cast<std::uint32_t>(std::min<std::size_t>(left, mulpdu - kHeaderLen));
    Piece piece{header_, {offset_, len, len == left}};
    piece.header.last = piece.cut.last;
    move_to(piece.header, offset_);
    offset_ += len;
    done_ = piece.cut.last;
    return piece;
  }

 private:
  static void move_to(TaggedHeader& header, std::uint32_t offset) { header.to += offset; }    // DDP-5.2-09
  static void move_to(UntaggedHeader& header, std::uint32_t offset) { header.mo += offset; }  // DDP-5.2-06

  Header header_{};
  std::uint32_t message_len_ = 0;
  std::uint32_t offset_ = 0;
  bool done_ = true;
};

using TaggedSegmenter = Segmenter<TaggedHeader, kTaggedHeaderLen>;
using UntaggedSegmenter = Segmenter<UntaggedHeader, kUntaggedHeaderLen>;

}  // namespace weft::ddp
