#include "mpa/fpdu_writer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "mpa/crc32c.h"
#include "mpa/wire/release_memory.h"

namespace weft::mpa {
namespace {

std::size_t total_len(std::span<const ConstBytes> payload) {
  std::size_t len = 0;
  for (const ConstBytes& octets : payload) len += octets.size();
  return len;
}

std::uint8_t* put(std::uint8_t* at, ConstBytes octets) {
  if (!octets.empty()) std::memcpy(at, octets.data(), octets.size());
  return at + octets.size();
}

std::uint8_t* put_ulpdu_length(std::uint8_t* at, std::size_t ulpdu_len) {
  at[0] = static_cast<std::uint8_t>(ulpdu_len >> 8);
  at[1] = static_cast<std::uint8_t>(ulpdu_len);
  return at + kUlpduLengthLen;
}

std::uint8_t* put_crc(std::uint8_t* at, std::uint32_t crc) {
  emit_crc(std::span<std::uint8_t, kCrcLen>(at, kCrcLen), crc);
  return at + kCrcLen;
}

// MarkedRun writes the octets of one FPDU in sequence and inserts each Marker at its place.
class MarkedRun {
 public:
  MarkedRun(std::uint8_t* at, MarkerLayout layout) : at_(at), layout_(layout) {}

  void put(ConstBytes octets) {
    while (!octets.empty()) {
      put_marker_if_due();
      const std::size_t len = std::min(octets.size(), layout_.run_len(bare_));
      at_ = mpa::put(at_, octets.first(len));
      bare_ += len;
      octets = octets.subspan(len);
    }
  }

  // A Marker at this octet already belongs to the FPDU and its CRC.
  std::uint8_t* at_next_octet() {
    put_marker_if_due();
    return at_;
  }

 private:
  void put_marker_if_due() {
    if (layout_.num_before(bare_) == num_markers_) return;
    emit_marker(std::span<std::uint8_t, kMarkerLen>(at_, kMarkerLen), layout_.fpduptr(num_markers_));
    at_ += kMarkerLen;
    ++num_markers_;
  }

  std::uint8_t* at_;
  MarkerLayout layout_;
  std::size_t bare_ = 0;
  std::size_t num_markers_ = 0;
};

}  // namespace

bool FpduWriter::add(ConstBytes ulpdu_header, std::span<const ConstBytes> payload, bool copy_payload) {
  const std::size_t payload_len = total_len(payload);
  const std::size_t ulpdu_len = ulpdu_header.size() + payload_len;
  assert(ulpdu_len != 0 && ulpdu_len <= kMaxMulpdu);  // MPA-3-05
  const std::size_t len = next_fpdu_len(ulpdu_len);
  const std::size_t pending = pending_octets();
  if (pending != 0 && (pending > kMaxBatchLen || len > kMaxBatchLen - pending)) return false;
  // Payload is copied if one sendmsg could not take its pieces. One view stays free for the rest of a cut FPDU.
  static constexpr std::size_t kMaxPieces = kMaxBuffers - 1;
  const bool gather =
      !markers_ && !copy_payload && payload_len >= kGatherMinPayloadLen && payload.size() + 2 <= kMaxPieces;
  const std::size_t max_new_pieces = gather ? payload.size() + 2 : 1;
  if (pending != 0 && max_new_pieces > kMaxPieces - room_->pieces_.size()) return false;

  if (markers_) {
    add_marked(ulpdu_header, payload, ulpdu_len);
  } else if (!gather) {
    add_copied(ulpdu_header, payload, ulpdu_len, copy_payload);
  } else {
    add_gathered(ulpdu_header, payload, ulpdu_len);
  }
  added_len_ += len;
  room_->fpdu_ends_.push_back(added_len_);
  return true;
}

// Copies the whole FPDU into the arena. changing: others may write the payload meanwhile, so the copy has to be hashed.
// Without one pass for both, hashing the source is faster than reading back octets that were just written.
void FpduWriter::add_copied(ConstBytes ulpdu_header, std::span<const ConstBytes> payload, std::size_t ulpdu_len,
                            bool changing) {
  const std::size_t len = fpdu_len(ulpdu_len);
  std::uint8_t* const begin = reserve(len);
  std::uint8_t* const payload_begin = put(put_ulpdu_length(begin, ulpdu_len), ulpdu_header);
  std::uint8_t* const pad = begin + kUlpduLengthLen + ulpdu_len;
  std::uint8_t* const crc_field = pad + pad_len(ulpdu_len);
  std::memset(pad, 0, kCrcLen);  // MPA-4.1-03; the PAD is shorter, and the CRC follows it
  // Small FPDUs are hashed with one call: the calls cost more than the octets.
  static constexpr std::size_t kOneGoLen = 256;
  const bool one_pass = crc_ && len > kOneGoLen && Crc32c::copies_in_one_pass();
  std::uint8_t* at = payload_begin;
  if (!one_pass) {
    for (const ConstBytes& octets : payload) at = put(at, octets);
  }
  if (!crc_ || (!one_pass && (changing || len <= kOneGoLen))) {
    put_crc(crc_field, crc_ ? crc32c({begin, crc_field}) : 0);
  } else {
    Crc32c crc;
    crc.update({begin, payload_begin});
    for (const ConstBytes& octets : payload) {
      if (one_pass) {
        crc.copy(at, octets);
        at += octets.size();
      } else {
        crc.update(octets);
      }
    }
    crc.update({pad, crc_field});
    put_crc(crc_field, crc.value());
  }
  commit(len);
}

// Copies the whole FPDU with its Markers into the arena and hashes it there with one call, while it is in the cache.
// The CRC covers the Markers too (MPA-4.4-13).
void FpduWriter::add_marked(ConstBytes ulpdu_header, std::span<const ConstBytes> payload, std::size_t ulpdu_len) {
  static constexpr std::array<std::uint8_t, 3> kPad = {};
  const MarkerLayout layout = next_layout();
  const std::size_t len = layout.stream_len(fpdu_len(ulpdu_len));
  std::uint8_t* const begin = reserve(len);
  std::array<std::uint8_t, kUlpduLengthLen> ulpdu_length;
  put_ulpdu_length(ulpdu_length.data(), ulpdu_len);
  MarkedRun run(begin, layout);
  run.put(ulpdu_length);
  run.put(ulpdu_header);
  for (const ConstBytes& octets : payload) run.put(octets);
  run.put(ConstBytes(kPad).first(pad_len(ulpdu_len)));  // MPA-4.1-03
  std::uint8_t* const crc_field = run.at_next_octet();
  put_crc(crc_field, crc_ ? crc32c({begin, crc_field}) : 0);
  commit(len);
}

void FpduWriter::add_gathered(ConstBytes ulpdu_header, std::span<const ConstBytes> payload, std::size_t ulpdu_len) {
  Crc32c crc;
  const std::size_t head_len = kUlpduLengthLen + ulpdu_header.size();
  std::uint8_t* const head = reserve(head_len);
  put(put_ulpdu_length(head, ulpdu_len), ulpdu_header);
  if (crc_) crc.update({head, head_len});
  commit(head_len);
  for (const ConstBytes& octets : payload) {
    if (octets.empty()) continue;
    if (crc_) crc.update(octets);
    room_->pieces_.push_back({octets.data(), 0, octets.size()});
  }
  const std::size_t tail_len = pad_len(ulpdu_len) + kCrcLen;
  std::uint8_t* const tail = reserve(tail_len);
  std::memset(tail, 0, kCrcLen);  // MPA-4.1-03, as above
  if (crc_) crc.update({tail, pad_len(ulpdu_len)});
  put_crc(tail + pad_len(ulpdu_len), crc_ ? crc.value() : 0);  // MPA-4.4-12
  commit(tail_len);
}

// Returns len octets at the end of the arena, to be filled and then committed. Moves the arena when it has to grow, so
// pieces are kept as offsets.
std::uint8_t* FpduWriter::reserve(std::size_t len) {
  if (len > room_->arena_capacity_ - arena_len_) {
    static constexpr std::size_t kFirstCapacity = 4096;
    const std::size_t capacity = std::max({kFirstCapacity, 2 * room_->arena_capacity_, arena_len_ + len});
    std::unique_ptr<std::uint8_t[]> grown(new std::uint8_t[capacity]);
    if (arena_len_ != 0) std::memcpy(grown.get(), room_->arena_.get(), arena_len_);
    room_->arena_ = std::move(grown);
    room_->arena_capacity_ = capacity;
  }
  return room_->arena_.get() + arena_len_;
}

void FpduWriter::commit(std::size_t len) {
  if (!room_->pieces_.empty() && room_->pieces_.back().data == nullptr) {
    room_->pieces_.back().len += len;  // only the arena's end is ever committed, so this piece ends there
  } else {
    room_->pieces_.push_back({nullptr, arena_len_, len});
  }
  arena_len_ += len;
}

ConstBytes FpduWriter::octets_of(const Piece& piece) const {
  return {piece.data != nullptr ? piece.data : room_->arena_.get() + piece.arena_begin, piece.len};
}

std::span<const ConstBytes> FpduWriter::buffers() {
  room_->buffers_.clear();
  if (!rest().empty()) room_->buffers_.push_back(rest());
  for (const Piece& piece : room_->pieces_) room_->buffers_.push_back(octets_of(piece));
  return room_->buffers_;
}

// Copies octets [begin, end) of this batch into rest_.
void FpduWriter::keep_rest(std::size_t begin, std::size_t end) {
  std::size_t at = 0;
  for (const Piece& piece : room_->pieces_) {
    const std::size_t from = std::max(at, begin);
    const std::size_t to = std::min(at + piece.len, end);
    if (from < to) {
      const ConstBytes octets = octets_of(piece).subspan(from - at, to - from);
      rest_.insert(rest_.end(), octets.begin(), octets.end());
    }
    at += piece.len;
    if (at >= end) return;
  }
}

std::size_t FpduWriter::on_tx(std::size_t n) {
  assert(n <= pending_octets());
  const std::size_t of_rest = std::min(n, rest().size());
  rest_begin_ += of_rest;
  n -= of_rest;
  std::size_t num_begun = 0;
  if (rest().empty()) {
    rest_.clear();
    rest_begin_ = 0;
    const auto first_unsent = std::upper_bound(room_->fpdu_ends_.begin(), room_->fpdu_ends_.end(), n);
    num_begun = static_cast<std::size_t>(first_unsent - room_->fpdu_ends_.begin());
    const std::size_t whole_len = num_begun == 0 ? 0 : room_->fpdu_ends_[num_begun - 1];
    if (n > whole_len) {
      keep_rest(n, room_->fpdu_ends_[num_begun]);
      ++num_begun;
    }
  }
  // FPDUs that were not begun are framed again later, for their new position in the stream.
  if (num_begun > 0) position_ += room_->fpdu_ends_[num_begun - 1];
  room_->pieces_.clear();
  room_->fpdu_ends_.clear();
  arena_len_ = 0;
  added_len_ = 0;
  room_->buffers_.clear();
  return num_begun;
}

void FpduWriter::trim() {
  if (pending_octets() != 0) return;
  release_memory(rest_);
  if (own_room_) own_room_->release();
}

void FramingRoom::release() {
  arena_.reset();
  arena_capacity_ = 0;
  release_memory(pieces_);
  release_memory(fpdu_ends_);
  release_memory(buffers_);
}

}  // namespace weft::mpa
