#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/perf/options.h"
#include "base/bytes.h"

// The messages between perf's client and listener. Hello and Ready are the private data of the RDMA connection (and,
// for the TCP baselines, the first octets of the connection in either direction). Totals travel in Sends. All are
// big-endian.
namespace weft::apps::perf {

inline constexpr std::uint32_t kMagic = 0x77706601;  // "wpf", version 1

// Hello: the client announces its run.
struct Hello {
  Op op = Op::kWrite;
  bool lat = false;
  bool spin = false;  // TCP baselines: neither end sleeps in a system call
  std::uint64_t size = 0;
  std::uint32_t depth = 1;
  friend bool operator==(const Hello&, const Hello&) = default;
};
inline constexpr std::size_t kHelloLen = 20;

// Ready: the listener gives its other ports, and the memory that the client may use.
struct Ready {
  std::uint16_t tcp_port = 0;
  std::uint16_t rpc_port = 0;
  std::uint64_t addr = 0;  // read and write: the region
  std::uint32_t rkey = 0;
  std::uint64_t length = 0;  // octets of the region; tcp-file-read: of the file
  std::uint32_t window = 0;  // send: messages that may be under way without an answer
  bool crc = true;           // the listener wants CRCs; they are then on even if the client wants none
  std::string error;         // not empty: why the listener refuses
  std::string congestion_control;
  friend bool operator==(const Ready&, const Ready&) = default;
};
inline constexpr std::size_t kMaxNameLen = 16;
inline constexpr std::size_t kMaxErrorLen = 160;
inline constexpr std::size_t kReadyLen = 4 + 2 + 2 + 8 + 4 + 8 + 4 + 4 + kMaxNameLen + kMaxErrorLen;

// Totals: what the listener has received so far.
struct Totals {
  std::uint64_t messages = 0;
  std::uint64_t octets = 0;
  bool final = false;  // the answer to the client's end
  friend bool operator==(const Totals&, const Totals&) = default;
};
inline constexpr std::size_t kTotalsLen = 24;

// without_padding cuts off the zeros that InfiniBand and RoCE append to private data, behind a message of `len` octets.
// Other octets stay, for the parser to refuse.
ConstBytes without_padding(ConstBytes octets, std::size_t len);

// A Ready ends in zeros: the part of the error's field that the error leaves over. cut_ready leaves out the zeros that
// have no room in `most` octets, if there are so many; filled_ready puts them back.
void cut_ready(std::vector<std::uint8_t>& octets, std::size_t most);
std::vector<std::uint8_t> filled_ready(ConstBytes octets);

std::array<std::uint8_t, kHelloLen> emit_hello(const Hello& hello);
std::array<std::uint8_t, kReadyLen> emit_ready(const Ready& ready);
std::array<std::uint8_t, kTotalsLen> emit_totals(const Totals& totals);

// The parsers take exactly one message and refuse every message that perf never sends: another magic, an unknown op,
// sizes and depths beyond the limits of options.h.
std::optional<Hello> parse_hello(ConstBytes octets);
std::optional<Ready> parse_ready(ConstBytes octets);
std::optional<Totals> parse_totals(ConstBytes octets);

}  // namespace weft::apps::perf
