#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "base/bytes.h"

// Blocks of pcapng (draft-ietf-opsawg-pcapng). Integers are in the byte order of the machine, which the section header
// tells.
namespace weft::verbs::soft {

// PacketBlock: an Enhanced Packet Block. The octets of the packet are `head` and `payload`, one behind the other.
struct PacketBlock {
  ConstBytes head, payload;
  std::size_t wire_len = 0;  // octets that the packet had
  std::chrono::nanoseconds time{};
  std::string_view comment;  // empty: none

  std::size_t len() const;
  // Writes len() octets.
  void emit(std::uint8_t* to) const;
};

// section_head returns the section header and the description of the only interface. comment: of the section; may be
// empty.
std::vector<std::uint8_t> section_head(std::string_view comment);

// Drops: of the packets that were meant for a file.
struct Drops {
  std::uint64_t packets = 0;  // in the file
  std::uint64_t dropped = 0;
};
inline constexpr std::size_t kStatisticsLen = 52;
// statistics returns an Interface Statistics Block of kStatisticsLen octets.
std::vector<std::uint8_t> statistics(const Drops& drops, std::chrono::nanoseconds time);

// block_len returns the length of the block in front, which is whole.
std::size_t block_len(ConstBytes blocks);

// BlockQueue: whole blocks on their way to a file, in pieces of kPiece octets or one longer block.
class BlockQueue {
 public:
  static constexpr std::size_t kPiece = 256 << 10;

  struct Piece {
    std::unique_ptr<std::uint8_t[]> room;
    std::size_t capacity = 0, len = 0, num_blocks = 0;
    ConstBytes octets() const { return {room.get(), len}; }
  };

  bool empty() const { return pieces_.empty(); }
  // Octets that wait.
  std::size_t len() const { return len_; }
  // add returns the place of a block of `len` octets, which the caller writes at once.
  std::uint8_t* add(std::size_t len);
  // take gives all pieces away. give_back returns one for use: a few are kept.
  std::deque<Piece> take();
  void give_back(Piece piece);
  void clear();

 private:
  static constexpr std::size_t kSpare = 8;

  std::deque<Piece> pieces_;
  std::vector<Piece> spare_;
  std::size_t len_ = 0;
};

}  // namespace weft::verbs::soft
