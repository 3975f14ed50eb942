#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/dissect/packet.h"
#include "base/bytes.h"
#include "base/result.h"

namespace weft::apps::dissect {

// Pcapng understands the blocks of a pcapng file (draft-ietf-opsawg-pcapng). libpcap refuses files whose interfaces
// have different link types or snapshot lengths, and sections of different byte orders. A value without I/O. Its memory
// is that of kMaxInterfaces interfaces.
class Pcapng {
 public:
  // The octets that every block has, its last four included.
  static constexpr std::size_t kMinBlock = 12;
  static constexpr std::size_t kMaxBlock = 16 << 20;
  static constexpr std::size_t kMaxInterfaces = 65536;
  static constexpr std::size_t kMaxComments = 16;  // of a packet

  // block_len tells how long a block is that begins with these octets. The error is one line.
  Result<std::size_t, std::string> block_len(std::span<const std::uint8_t, kMinBlock> begin);
  // on_block takes the whole block. Returns its packet, without a number; or nothing if the block has none. The packet
  // views the block, and its comments are valid until the next block.
  Result<std::optional<Packet>, std::string> on_block(ConstBytes block);
  // Packets that the interfaces and their systems dropped, as the statistics blocks so far say.
  std::uint64_t num_dropped() const;

 private:
  // Interface: where packets come from.
  struct Interface {
    int link_type = 0;
    std::uint32_t snapshot_len = 0;  // 0: no limit
    bool binary = false;             // units of 2^-exponent seconds, not 10^-exponent
    unsigned exponent = 6;
    std::uint64_t units_per_second = 1;
    std::int64_t offset = 0;    // seconds
    std::uint64_t dropped = 0;  // packets
  };
  class Fields;

  static std::string version_fault(Fields& in);
  std::string on_interface(Fields& in);
  Result<std::optional<Packet>, std::string> on_packet(std::uint32_t type, Fields& in);
  void take_comments(std::uint32_t captured, Fields& in, Packet& packet);
  void on_statistics(Fields& in);
  // Calls take(code, value) for each option.
  template <typename Take>
  static void take_options(Fields& in, Take take);
  static Timestamp time_of(const Interface& interface, std::uint64_t units);

  bool big_endian_ = false;
  std::vector<Interface> interfaces_;
  std::uint64_t dropped_before_ = 0;        // packets of earlier sections
  std::vector<std::string_view> comments_;  // of the last packet
  Timestamp last_{};                        // of the packet before: some blocks have none
};

}  // namespace weft::apps::dissect
