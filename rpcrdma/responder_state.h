#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/responder.h"

// What a Responder keeps for Calls and answers; shared by its source files, included by nobody else.
namespace weft::rpcrdma {

// What the peer refused, for the log.
inline std::string refused_str(const char* what, std::uint32_t handle, std::uint64_t offset) {
  return fmt::format("{} of handle {:#x} at offset {:#x}", what, handle, offset);
}

// What the ServedCalls of this connection show stands in `receives`; `rest` is what they hold of the budget when the
// connection is gone. Both go with the last of them.
struct Responder::ServedMemory {
  std::shared_ptr<const void> receives;
  std::shared_ptr<const void> rest;
};

struct Responder::CallSlot {
  enum class State : std::uint8_t { kFree, kWaiting, kPulling, kServed, kAnswering };

  // A chunk and the Buffer that it is pulled into.
  struct Pull {
    const Chunk* source = nullptr;
    MutBytes target;
    std::uint32_t lkey = 0;
  };
  // A Read chunk that agrees with an argument: its place in `args` and its octets without roundup.
  struct Item {
    const Chunk* source = nullptr;
    std::size_t position = 0;
    std::uint32_t len = 0;
    Buffer data;
  };

  State state = State::kFree;
  std::uint32_t generation = 0;
  std::uint32_t xid = 0;
  std::uint32_t vers = v1::kVersion;
  bool long_call = false;
  ChunkLists lists;
  // These stand in the Receive buffer or in `message`.
  CallHeaderView rpc;
  ConstBytes header;
  ConstBytes args;
  const Program* program = nullptr;
  bool may_reduce = true;  // by its credential
  Buffer message;          // Long Call: the Payload stream
  std::vector<Item> items;
  std::size_t need = 0;  // octets that it wants of the budget
  std::size_t held = 0;  // and that it has

  // What is being pulled:
  std::vector<Pull> pulls;
  std::size_t next_pull = 0;
  std::size_t next_segment = 0;
  std::size_t filled = 0;   // octets of pulls[next_pull]'s target that posted Reads cover
  std::uint32_t reads = 0;  // under way
  std::uint32_t reads_done = 0;

  // The segment of the Read that is to end next: they end in the order of their posting. Null where there is none.
  const Segment* next_read() const;
  bool told_short = false;  // that memory is, to the log

  // Free, for another Call; vectors keep their room.
  void reset() {
    state = State::kFree;
    ++generation;
    long_call = false;
    if (!lists.empty()) lists = ChunkLists{};
    header = args = {};
    program = nullptr;
    message = Buffer{};
    items.clear();
    held = 0;
    pulls.clear();
    told_short = false;
  }
};

struct Responder::Answer {
  std::uint32_t slot = 0;
  std::optional<v1::Err> err;
  ReplyHeader rpc;
  ServedReply reply;
};

struct Responder::Outgoing {
  struct Write {
    std::size_t first_sge = 0;
    std::size_t num_sges = 0;
    std::uint64_t remote_addr = 0;
    std::uint32_t rkey = 0;
  };

  bool in_use = false;
  std::uint32_t call_slot = 0;
  std::uint32_t xid = 0;
  ServedReply reply;  // holds what the Writes and the Send send from
  std::unique_ptr<verbs::Mr> results_mr;
  std::vector<verbs::Sge> sges;  // of the Writes
  std::vector<Write> writes;
  std::size_t next_write = 0;
  std::size_t send_len = 0;                 // octets of the Send buffer
  std::vector<verbs::Sge> send_sges;        // where the Send gathers from elsewhere too
  std::optional<std::uint32_t> invalidate;  // by the Send
  std::size_t held = 0;

  // Ready for the next answer; vectors keep their room.
  void reset() {
    // What it may hold on to; the rest comes with the next one.
    reply.results = {};
    reply.buffers.clear();
    results_mr.reset();
    sges.clear();
    writes.clear();
    send_sges.clear();
    invalidate.reset();
    next_write = send_len = held = 0;
    in_use = false;
  }
};

}  // namespace weft::rpcrdma
