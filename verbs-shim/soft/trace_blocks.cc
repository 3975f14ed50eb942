#include "verbs-shim/soft/trace_blocks.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::verbs::soft {

namespace {

using Octets = std::vector<std::uint8_t>;

constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a, kInterface = 1, kStatistics = 5, kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrder = 0x1a2b3c4d;
constexpr std::uint16_t kOptEnd = 0, kOptComment = 1, kOptInterfaceName = 2, kOptResolution = 9;
constexpr std::uint16_t kOptReceived = 4, kOptDropped = 5;
constexpr std::uint16_t kLinkRaw = 101;  // LINKTYPE_RAW: packets begin with an IP header
constexpr std::uint8_t kNanoseconds = 9;
constexpr std::size_t kPacketOverhead = 32, kOptionHead = 4;

constexpr std::size_t padded(std::size_t len) {
  return (len + 3) / 4 * 4;
}

// Out writes where there is room for all of it.
class Out {
 public:
  explicit Out(std::uint8_t* to) : to_(to) {}
  template <typename T>
  void number(T value) {
    std::memcpy(to_, &value, sizeof(T));
    to_ += sizeof(T);
  }
  void time(std::chrono::nanoseconds time) {
    const auto ns = static_cast<std::uint64_t>(time.count());
    number(static_cast<std::uint32_t>(ns >> 32));
    number(static_cast<std::uint32_t>(ns));
  }
  void octets(ConstBytes octets) {
    if (!octets.empty()) std::memcpy(to_, octets.data(), octets.size());
    to_ += octets.size();
  }
  void pad(std::size_t len) {
    const std::size_t more = padded(len) - len;
    std::memset(to_, 0, more);
    to_ += more;
  }
  void option(std::uint16_t code, ConstBytes value) {
    number(code);
    number(static_cast<std::uint16_t>(value.size()));
    octets(value);
    pad(value.size());
  }

 private:
  std::uint8_t* to_;
};

ConstBytes octets_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

struct Option {
  std::uint16_t code;
  Octets value;
};

Option number_option(std::uint16_t code, std::uint64_t value) {
  Octets octets(sizeof(value));
  std::memcpy(octets.data(), &value, sizeof(value));
  return {code, octets};
}

// block returns a block of a fixed part and options.
Octets block(std::uint32_t type, const Octets& fixed, const std::vector<Option>& options) {
  std::size_t len = 12 + fixed.size() + kOptionHead;
  for (const Option& option : options) len += kOptionHead + padded(option.value.size());
  Octets octets(len);
  Out out(octets.data());
  out.number(type);
  out.number(static_cast<std::uint32_t>(len));
  out.octets(fixed);
  for (const Option& option : options) out.option(option.code, option.value);
  out.option(kOptEnd, {});
  out.number(static_cast<std::uint32_t>(len));
  return octets;
}

}  // namespace

std::size_t PacketBlock::len() const {
  const std::size_t options = comment.empty() ? 0 : kOptionHead + padded(comment.size()) + kOptionHead;
  return kPacketOverhead + padded(head.size() + payload.size()) + options;
}

void PacketBlock::emit(std::uint8_t* to) const {
  const std::size_t kept = head.size() + payload.size();
  const auto block_len = static_cast<std::uint32_t>(len());
  Out out(to);
  out.number(kEnhancedPacket);
  out.number(block_len);
  out.number(std::uint32_t{0});  // the interface
  out.time(time);
  out.number(static_cast<std::uint32_t>(kept));
  out.number(static_cast<std::uint32_t>(wire_len));
  out.octets(head);
  out.octets(payload);
  out.pad(kept);
  if (!comment.empty()) {
    out.option(kOptComment, octets_of(comment));
    out.option(kOptEnd, {});
  }
  out.number(block_len);
}

Octets section_head(std::string_view comment) {
  Octets fixed(16);
  Out out(fixed.data());
  out.number(kByteOrder);
  out.number(std::uint16_t{1});  // version 1.0
  out.number(std::uint16_t{0});
  out.number(~std::uint64_t{0});  // the section's length is not known
  std::vector<Option> options;
  const ConstBytes text = octets_of(comment);
  if (!comment.empty()) options.push_back({kOptComment, Octets(text.begin(), text.end())});
  Octets all = block(kSectionHeader, fixed, options);

  Octets interface(8);
  Out words(interface.data());
  words.number(kLinkRaw);
  words.number(std::uint16_t{0});
  words.number(std::uint32_t{0});  // no limit of a packet's length
  const ConstBytes name = octets_of("weft");
  const Octets described = block(
      kInterface, interface, {{kOptInterfaceName, Octets(name.begin(), name.end())}, {kOptResolution, {kNanoseconds}}});
  all.insert(all.end(), described.begin(), described.end());
  return all;
}

Octets statistics(const Drops& drops, std::chrono::nanoseconds time) {
  Octets fixed(12);
  Out out(fixed.data());
  out.number(std::uint32_t{0});  // the interface
  out.time(time);
  return block(kStatistics, fixed,
               {number_option(kOptReceived, drops.packets + drops.dropped), number_option(kOptDropped, drops.dropped)});
}

std::size_t block_len(ConstBytes blocks) {
  std::uint32_t len = 0;
  std::memcpy(&len, blocks.data() + 4, sizeof(len));
  return len;
}

std::uint8_t* BlockQueue::add(std::size_t len) {
  if (pieces_.empty() || pieces_.back().capacity - pieces_.back().len < len) {
    if (len <= kPiece && !spare_.empty()) {
      pieces_.push_back(std::move(spare_.back()));
      spare_.pop_back();
    } else {
      const std::size_t capacity = std::max(kPiece, len);
      pieces_.push_back({std::make_unique_for_overwrite<std::uint8_t[]>(capacity), capacity});
    }
  }
  Piece& piece = pieces_.back();
  std::uint8_t* const at = piece.room.get() + piece.len;
  piece.len += len;
  ++piece.num_blocks;
  len_ += len;
  return at;
}

std::deque<BlockQueue::Piece> BlockQueue::take() {
  len_ = 0;
  return std::exchange(pieces_, {});
}

void BlockQueue::give_back(Piece piece) {
  if (spare_.size() >= kSpare || piece.capacity != kPiece) return;
  piece.len = piece.num_blocks = 0;
  spare_.push_back(std::move(piece));
}

void BlockQueue::clear() {
  pieces_.clear();
  len_ = 0;
}

}  // namespace weft::verbs::soft
