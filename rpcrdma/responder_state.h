#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rpcrdma/responder.h"

// What a Responder keeps for Calls and answers; shared by its source files, included by nobody else.
namespace weft::rpcrdma {

struct Responder::CallSlot {
  enum class State : std::uint8_t { kFree, kWaiting, kPulling, kServed, kAnswering };

  State state = State::kFree;
  std::uint32_t generation = 0;
  std::uint32_t xid = 0;
  std::uint32_t vers = v1::kVersion;
  bool long_call = false;
  ChunkLists lists;
  CallHeader rpc;
  const Program* program = nullptr;
  std::vector<std::uint8_t> args;
  std::optional<ItemPlace> item_place;
  Buffer message;  // Long Call: the Payload stream while it is pulled
  Buffer item;
  std::size_t held = 0;  // octets of the budget

  // The chunk that is being pulled:
  const Chunk* source = nullptr;
  MutBytes target;
  std::uint32_t target_lkey = 0;
  std::size_t next_segment = 0;
  std::size_t filled = 0;   // octets of target that posted Reads cover
  std::uint32_t reads = 0;  // under way
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

  std::uint32_t call_slot = 0;
  ServedReply reply;  // holds what the Writes send from
  std::unique_ptr<verbs::Mr> results_mr;
  std::vector<verbs::Sge> sges;
  std::vector<Write> writes;
  std::size_t next_write = 0;
  std::size_t send_len = 0;
  std::size_t held = 0;
};

}  // namespace weft::rpcrdma
