#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

// Hostile clients of `weft serve`: TCP connections from many addresses of loopback (crowd.h). They write MPA, DDP,
// RDMAP and RPC-over-RDMA by hand and answer nothing, so that they need less of the machine than the server.
namespace weft::exhaust {

using Octets = std::vector<std::uint8_t>;

// Attack is what each of its connections does.
struct Attack {
  enum class Port : std::uint8_t { kRdma, kMount };          // of the server
  enum class Over : std::uint8_t { kTcp, kRecords, kRdma };  // kTcp: nothing is ever said but `raw`
  enum class Pace : std::uint8_t {
    kOnce,    // `depth` messages, and then nothing
    kAgain,   // one more for each Reply
    kCredits  // messages of 2-wg07, as many as the server grants and `depth` at most
  };

  const char* name = "";
  // The kinds of resource that it exhausts: LedgerKind::name.
  std::vector<std::string_view> kinds = {};
  Port port = Port::kRdma;
  std::size_t connections = 0;  // at the same time
  Over over = Over::kRdma;
  Pace pace = Pace::kOnce;
  std::uint32_t depth = 0;     // messages of one connection that have no answer yet; fewer where fewer are granted
  std::size_t per_second = 0;  // connections that are made, each instead of the oldest; 0: instead of those that ended
  // The first message of a connection, which asks for NULL, and every other.
  std::function<Octets(std::uint32_t xid)> first = {}, message = {};
  // Octets that a connection sends as they are: over RDMA after the MPA Reply, over TCP at once. It stays until it is
  // reset.
  Octets raw = {};
  bool is_deaf = false;  // reads nothing more once it has said its messages
};

// What the attackers have done so far, in memory that they may share with the program that measures.
struct Done {
  std::atomic<std::uint64_t> open, ready, messages, replies;
};

}  // namespace weft::exhaust
