#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "mpa/fpdu.h"
#include "mpa/marker.h"

namespace weft::mpa {

// FramingRoom is the memory of one batch of an FpduWriter. Between batches it holds nothing that is needed, so a worker
// has one for all its connections: the arena stays in the cache, and a connection at rest holds nothing. Not
// thread-safe.
class FramingRoom {
 public:
  FramingRoom() = default;
  FramingRoom(const FramingRoom&) = delete;
  FramingRoom& operator=(const FramingRoom&) = delete;

  // Gives the memory back to the heap. Call it between batches only.
  void release();

 private:
  friend class FpduWriter;
  // A part of the batch: in the arena if `data` is null, else in the caller's memory.
  struct Piece {
    const std::uint8_t* data;
    std::size_t arena_begin;
    std::size_t len;
  };

  std::unique_ptr<std::uint8_t[]> arena_;
  std::size_t arena_capacity_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> fpdu_ends_;  // octets of the batch up to the end of each FPDU, the rest not counted
  std::vector<ConstBytes> buffers_;
};

// FpduWriter frames ULPDUs and keeps them as one batch: add FPDUs, hand buffers() to sendmsg, call on_tx. Headers, PAD,
// CRC and small or changeable payload live in the arena of its room. Large payload is referenced in place. So a large
// FPDU costs two buffers, and a run of small ones costs one. With Markers everything is copied: their place depends on
// the octets before them, and one buffer is cheaper than a view for every 508 octets.
class FpduWriter {
 public:
  static constexpr std::size_t kMaxBatchLen = 1024 * 1024;   // octets
  static constexpr std::size_t kMaxBuffers = 1024;           // Linux's IOV_MAX
  static constexpr std::size_t kGatherMinPayloadLen = 8192;  // below this, copying is faster than gathering

  // crc: whether CRCs are in use; the field is zero otherwise. markers: whether the peer asked for them. position: the
  // octets of Full Operation sent before, 0 except in tests (MPA-4.3-06). room: outlives the writer, and no other
  // writer uses it between add and on_tx; null: the writer has its own.
  explicit FpduWriter(bool crc, bool markers = false, std::uint64_t position = 0, FramingRoom* room = nullptr)
      : crc_(crc),
        markers_(markers),
        position_(position),
        own_room_(room == nullptr ? std::make_unique<FramingRoom>() : nullptr),
        room_(room != nullptr ? room : own_room_.get()) {}

  // add frames the ULPDU made of ulpdu_header and then payload. add reads both at once, for the CRC. The kernel reads
  // payload that is not copied again, so its memory must not change until on_tx. copy_payload: always copy, for memory
  // that others may write meanwhile (the source of an RDMA Read Response). Returns false and adds nothing if the batch
  // is full; an empty batch takes any ULPDU. Precondition: 1 to kMaxMulpdu octets in all.
  [[nodiscard]] bool add(ConstBytes ulpdu_header, std::span<const ConstBytes> payload, bool copy_payload);

  // next_fpdu_len gives the length on the wire, Markers included, of a ULPDU's FPDU if it were added now.
  std::size_t next_fpdu_len(std::size_t ulpdu_len) const { return next_layout().stream_len(fpdu_len(ulpdu_len)); }

  // pending_octets counts the octets in buffers(), the rest of a cut FPDU included.
  std::size_t pending_octets() const { return rest().size() + added_len_; }

  // buffers is the gather list, at most kMaxBuffers views; valid until the next add or on_tx.
  std::span<const ConstBytes> buffers();

  // on_tx: the socket took the first n octets of buffers(). on_tx ends the batch. The writer keeps the rest of a cut
  // FPDU in its own memory: it comes first in the next buffers(). FPDUs of which the socket took no octet are
  // discarded. Returns the number of FPDUs added since the last on_tx that the socket began to take, in order. The
  // caller continues with the next one.
  std::size_t on_tx(std::size_t n);

  // trim gives the memory of its own back to the heap, if nothing is pending: for a connection at rest.
  void trim();

 private:
  using Piece = FramingRoom::Piece;

  std::uint8_t* reserve(std::size_t len);
  void commit(std::size_t len);
  void add_copied(ConstBytes ulpdu_header, std::span<const ConstBytes> payload, std::size_t ulpdu_len, bool changing);
  void add_marked(ConstBytes ulpdu_header, std::span<const ConstBytes> payload, std::size_t ulpdu_len);
  void add_gathered(ConstBytes ulpdu_header, std::span<const ConstBytes> payload, std::size_t ulpdu_len);
  void keep_rest(std::size_t begin, std::size_t end);
  ConstBytes octets_of(const Piece& piece) const;
  ConstBytes rest() const { return ConstBytes(rest_).subspan(rest_begin_); }
  MarkerLayout next_layout() const { return markers_ ? MarkerLayout::at(position_ + added_len_) : MarkerLayout(); }

  bool crc_;
  bool markers_;
  std::uint64_t position_;  // in the stream, of the first FPDU of this batch
  std::unique_ptr<FramingRoom> own_room_;
  FramingRoom* room_;
  std::size_t arena_len_ = 0;  // octets of this batch in the arena
  std::size_t added_len_ = 0;
  std::vector<std::uint8_t> rest_;  // of the FPDU that the last on_tx cut
  std::size_t rest_begin_ = 0;
};

}  // namespace weft::mpa
