#include "apps/dissect/pcapng.h"

#include <fmt/format.h>
#include <pcap/dlt.h>

#include <algorithm>

namespace weft::apps::dissect {

namespace {

constexpr std::uint32_t kSection = 0x0a0d0d0a, kInterface = 1, kOldPacket = 2, kSimplePacket = 3, kStatistics = 5;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrder = 0x1a2b3c4d;
constexpr std::uint16_t kEndOfOptions = 0, kComment = 1, kTimeResolution = 9, kTimeOffset = 14;
constexpr std::uint16_t kDroppedByInterface = 5, kDroppedBySystem = 7;
constexpr std::size_t kTypeAndLen = 8, kTrailer = 4;

// number reads a T from the front of octets, which has as many.
template <typename T>
T number(ConstBytes octets, bool big_endian) {
  std::uint64_t big = 0, little = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    big = big << 8 | octets[i];
    little |= std::uint64_t{octets[i]} << 8 * i;
  }
  return static_cast<T>(big_endian ? big : little);
}

// Files have numbers of their own for some link layers.
int dlt_of(std::uint16_t link_type) {
  constexpr std::uint16_t kFileRaw = 101;
  return link_type == kFileRaw ? DLT_RAW : link_type;
}

}  // namespace

// Fields takes fields off the front of a block's body, in the byte order of the section.
class Pcapng::Fields {
 public:
  Fields(ConstBytes octets, bool big_endian) : rest_(octets), big_endian_(big_endian) {}

  template <typename T>
  [[nodiscard]] bool take(T& out) {
    ConstBytes octets;
    if (!bytes(sizeof(T), octets)) return false;
    out = number<T>(octets, big_endian_);
    return true;
  }
  [[nodiscard]] bool bytes(std::size_t len, ConstBytes& out) {
    if (len > rest_.size()) return false;
    out = rest_.first(len);
    rest_ = rest_.subspan(len);
    return true;
  }
  ConstBytes rest() const { return rest_; }
  bool big_endian() const { return big_endian_; }

 private:
  ConstBytes rest_;
  bool big_endian_;
};

Result<std::size_t, std::string> Pcapng::block_len(std::span<const std::uint8_t, kMinBlock> begin) {
  const ConstBytes octets(begin);
  if (number<std::uint32_t>(octets, true) == kSection) {
    const ConstBytes order = octets.subspan(kTypeAndLen, 4);
    big_endian_ = number<std::uint32_t>(order, true) == kByteOrder;
    if (!big_endian_ && number<std::uint32_t>(order, false) != kByteOrder)
      return std::string("a pcapng section without a byte order");
  }
  const auto len = number<std::uint32_t>(octets.subspan(4), big_endian_);
  if (len < kMinBlock || len % 4 != 0) return fmt::format("a pcapng block of {} bytes", len);
  if (len > kMaxBlock) return fmt::format("a pcapng block of {} bytes, more than {}", len, kMaxBlock);
  return static_cast<std::size_t>(len);
}

Result<std::optional<Packet>, std::string> Pcapng::on_block(ConstBytes block) {
  if (number<std::uint32_t>(block.last(kTrailer), big_endian_) != block.size()) {
    return std::string("a pcapng block that ends with another length");
  }
  const auto type = number<std::uint32_t>(block, big_endian_);
  Fields in(block.subspan(kTypeAndLen, block.size() - kTypeAndLen - kTrailer), big_endian_);
  switch (type) {
    case kSection:
      if (const std::string error = version_fault(in); !error.empty()) return error;
      dropped_before_ = num_dropped();
      interfaces_.clear();
      break;
    case kStatistics: on_statistics(in); break;
    case kInterface:
      if (const std::string error = on_interface(in); !error.empty()) return error;
      break;
    case kOldPacket:
    case kSimplePacket:
    case kEnhancedPacket: return on_packet(type, in);
    default: break;
  }
  return std::optional<Packet>();
}

// The layout of a section of another version is unknown.
std::string Pcapng::version_fault(Fields& in) {
  std::uint32_t order = 0;
  std::uint16_t major = 0;
  if (!in.take(order) || !in.take(major)) return "a pcapng section without a version";
  return major == 1 ? "" : fmt::format("a pcapng section of version {}, and 1 is known", major);
}

std::string Pcapng::on_interface(Fields& in) {
  std::uint16_t link_type = 0, reserved = 0;
  Interface interface;
  if (!in.take(link_type) || !in.take(reserved) || !in.take(interface.snapshot_len)) {
    return "a pcapng interface without a link type";
  }
  if (interfaces_.size() == kMaxInterfaces) return fmt::format("more than {} pcapng interfaces", kMaxInterfaces);
  interface.link_type = dlt_of(link_type);
  take_options(in, [&](std::uint16_t code, ConstBytes value) {
    if (code == kTimeResolution && value.size() == 1) {
      interface.binary = (value[0] & 0x80) != 0;
      interface.exponent = value[0] & 0x7f;
    }
    if (code == kTimeOffset && value.size() == 8) {
      interface.offset = number<std::int64_t>(value, in.big_endian());
    }
  });
  // More than 64 bits can count.
  if (interface.exponent > (interface.binary ? 63 : 19)) return "a pcapng interface with an unknown time resolution";
  for (unsigned i = 0; i < interface.exponent; ++i) interface.units_per_second *= interface.binary ? 2 : 10;
  interfaces_.push_back(interface);
  return "";
}

template <typename Take>
void Pcapng::take_options(Fields& in, Take take) {
  std::uint16_t code = 0, len = 0;
  ConstBytes value, padding;
  while (in.take(code) && in.take(len) && code != kEndOfOptions && in.bytes(len, value)) {
    take(code, value);
    if (!in.bytes(-len & 3, padding)) return;
  }
}

// A later block of an interface has the numbers of the earlier ones in it.
void Pcapng::on_statistics(Fields& in) {
  std::uint32_t id = 0, high = 0, low = 0;
  if (!in.take(id) || !in.take(high) || !in.take(low) || id >= interfaces_.size()) return;
  std::uint64_t dropped = 0;
  take_options(in, [&](std::uint16_t code, ConstBytes value) {
    if ((code == kDroppedByInterface || code == kDroppedBySystem) && value.size() == 8) {
      dropped += number<std::uint64_t>(value, in.big_endian());
    }
  });
  interfaces_[id].dropped = dropped;
}

std::uint64_t Pcapng::num_dropped() const {
  std::uint64_t sum = dropped_before_;
  for (const Interface& interface : interfaces_) sum += interface.dropped;
  return sum;
}

// A time before 1970, or one that 64 bits of nanoseconds cannot hold, is the nearest that they can.
Timestamp Pcapng::time_of(const Interface& interface, std::uint64_t units) {
  constexpr std::uint64_t kNano = 1000000000;
  constexpr std::int64_t kMaxSeconds = 9000000000;
  constexpr unsigned kFine = 30;  // 2^30 is the least power beyond kNano
  const std::uint64_t per_second = interface.units_per_second;
  const std::uint64_t whole = units / per_second;
  std::uint64_t part = units % per_second;
  if (interface.binary) {
    const unsigned beyond = interface.exponent > kFine ? interface.exponent - kFine : 0;
    part = (part >> beyond) * kNano >> (interface.exponent - beyond);
  } else {
    part = per_second > kNano ? part / (per_second / kNano) : part * (kNano / per_second);
  }
  const std::int64_t bounded = static_cast<std::int64_t>(std::min<std::uint64_t>(whole, kMaxSeconds));
  const std::int64_t offset = std::clamp(interface.offset, -kMaxSeconds, kMaxSeconds);
  const std::int64_t seconds = bounded + offset;
  if (seconds < 0) return Timestamp();
  return std::chrono::seconds(std::min(seconds, kMaxSeconds)) + Timestamp(part);
}

void Pcapng::take_comments(std::uint32_t captured, Fields& in, Packet& packet) {
  ConstBytes padding;
  if (!in.bytes(-captured & 3, padding)) return;
  comments_.clear();
  take_options(in, [this](std::uint16_t code, ConstBytes value) {
    if (code != kComment || comments_.size() == kMaxComments) return;
    comments_.emplace_back(reinterpret_cast<const char*>(value.data()), value.size());
  });
  packet.comments = comments_;
}

Result<std::optional<Packet>, std::string> Pcapng::on_packet(std::uint32_t type, Fields& in) {
  std::uint32_t id = 0, high = 0, low = 0, captured = 0, wire_len = 0;
  bool good = true;
  if (type == kEnhancedPacket) {
    good = in.take(id);
  } else if (type == kOldPacket) {
    std::uint16_t short_id = 0, drops = 0;
    good = in.take(short_id) && in.take(drops);
    id = short_id;
  }
  if (type == kSimplePacket) {
    good = in.take(wire_len);
  } else {
    good = good && in.take(high) && in.take(low) && in.take(captured) && in.take(wire_len);
  }
  if (!good) return std::string("a pcapng packet without a whole header");
  if (id >= interfaces_.size()) return fmt::format("a pcapng packet of interface {}, which the file lacks", id);
  const Interface& interface = interfaces_[id];
  if (type == kSimplePacket) {
    captured = interface.snapshot_len == 0 ? wire_len : std::min(wire_len, interface.snapshot_len);
  } else {
    last_ = time_of(interface, static_cast<std::uint64_t>(high) << 32 | low);
  }
  Packet packet{.time = last_, .wire_len = wire_len, .link_type = interface.link_type};
  if (!in.bytes(captured, packet.octets)) {
    return fmt::format("a pcapng packet of {} bytes in a block of {}", captured, in.rest().size());
  }
  if (type != kSimplePacket && !in.rest().empty()) take_comments(captured, in, packet);
  return std::optional(packet);
}

}  // namespace weft::apps::dissect
