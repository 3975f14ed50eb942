#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/perf/options.h"
#include "mpa/wire/bytes.h"

// What perf's client and listener tell each other: Hello and Ready in the private data of the RDMA connection (and, for
// the TCP baselines, as the first octets of the connection in either direction), Totals in Sends. All big-endian.
namespace weft::apps::perf {

inline constexpr std::uint32_t kMagic = 0x77706601;  // "wpf", version 1

// Hello: the client says what it is about to do.
struct Hello {
  Op op = Op::kWrite;
  bool lat = false;
  bool spin = false;  // TCP baselines: neither end sleeps in a system call
  std::uint64_t size = 0;
  std::uint32_t depth = 1;
  friend bool operator==(const Hello&, const Hello&) = default;
};
inline constexpr std::size_t kHelloLen = 20;

// Ready: the listener says where its other ports are, and which memory the client may use.
struct Ready {
  std::uint16_t tcp_port = 0;
  std::uint16_t rpc_port = 0;
  std::uint64_t addr = 0;  // read and write: the region
  std::uint32_t rkey = 0;
  std::uint64_t length = 0;  // octets of the region; tcp-file-read: of the file
  std::uint32_t window = 0;  // send: messages that may be under way without an answer
  bool crc = true;           // the listener wants CRCs, so that they are on whatever the client wants
  std::string error;         // not empty: why it will not
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

// without_padding takes away the zeros with which InfiniBand and RoCE fill private data up, behind a message of `len`
// octets; octets that are anything else stay, for the parser to refuse.
ConstBytes without_padding(ConstBytes octets, std::size_t len);

// A Ready ends in zeros, as many as its error leaves over. cut_ready leaves out as many as have no room in `most`
// octets, if there are so many; filled_ready puts them back.
void cut_ready(std::vector<std::uint8_t>& octets, std::size_t most);
std::vector<std::uint8_t> filled_ready(ConstBytes octets);

std::array<std::uint8_t, kHelloLen> emit_hello(const Hello& hello);
std::array<std::uint8_t, kReadyLen> emit_ready(const Ready& ready);
std::array<std::uint8_t, kTotalsLen> emit_totals(const Totals& totals);

// The parsers take exactly one message and refuse what no perf would send: another magic, an unknown op, sizes and
// depths beyond the limits of options.h.
std::optional<Hello> parse_hello(ConstBytes octets);
std::optional<Ready> parse_ready(ConstBytes octets);
std::optional<Totals> parse_totals(ConstBytes octets);

}  // namespace weft::apps::perf
