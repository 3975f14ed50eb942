#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/responder.h"

// State that a Responder keeps for Calls and answers. Private to the responder*.cc files.
namespace weft::rpcrdma {

// Names a refused operation for the log.
inline std::string refused_str(const char* what, std::uint32_t handle, std::uint64_t offset) {
  return fmt::format("{} of handle {:#x} at offset {:#x}", what, handle, offset);
}

// `receives` is the memory behind the views of this connection's ServedCalls. `rest` is their part of the budget once
// the connection is gone. Both are released with the last ServedCall.
struct Responder::ServedMemory {
  std::shared_ptr<const void> receives;
  std::vector<CallLease> rest;
};

// The memory behind the views of a Call that came in several messages.
struct Responder::JoinedMemory {
  std::shared_ptr<const std::vector<std::uint8_t>> joined;
  std::shared_ptr<const void> served;
};

struct Responder::Call {
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
  std::uint32_t version = 0;
  std::uint64_t print = 0;             // CallPrint::hash; 0 without chunks
  std::uint64_t mark = 0;              // the observer's
  std::optional<ReceiveSlot> receive;  // the Receive buffer that it came in, or its last part
  // The Payload stream, if it came in several messages.
  std::shared_ptr<const std::vector<std::uint8_t>> joined;
  bool external = false;
  std::optional<std::uint32_t> inv_handle;
  ChunkLists lists;
  // These views point into the Receive buffer, into `joined` or into `message`.
  CallHeaderView rpc;
  ConstBytes header;
  ConstBytes args;
  const ServedProgram* program = nullptr;
  bool may_reduce = true;  // its credential allows it
  Buffer message;          // the Payload stream, if it was external
  std::vector<Item> items;
  std::size_t need = 0;  // octets that the Call needs from the budget, beyond those of its parts
  CallLease lease;
  std::optional<TimePoint> waits_since;  // for the rest, with octets that others may need

  // Progress of the pulls:
  std::vector<Pull> pulls;
  std::size_t next_pull = 0;
  std::size_t next_segment = 0;
  std::size_t filled = 0;   // octets of pulls[next_pull]'s target that posted Reads cover
  std::uint32_t reads = 0;  // under way
  std::uint32_t reads_done = 0;

  // The segment of the Read that ends next: Reads end in the order of their posting. Null if there is none.
  const Segment* next_read() const;
  bool told_short = false;  // the log has a line that memory is short for this Call

  // Makes the slot free for another Call. Vectors keep their room.
  void reset() {
    state = State::kFree;
    ++generation;
    print = 0;
    external = false;
    if (!lists.empty()) lists = ChunkLists{};
    header = args = {};
    program = nullptr;
    message = Buffer{};
    joined.reset();
    items.clear();
    lease.end();
    waits_since.reset();
    pulls.clear();
    told_short = false;
  }
};

struct Responder::Answer {
  CallSlot slot{};
  std::optional<TransportError> error;
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

  CallSlot call{};
  std::uint32_t xid = 0;
  std::uint64_t print = 0;  // of the Call
  CallOutcome outcome = CallOutcome::kSuccess;
  ServedReply reply;  // holds the memory that the Writes and the Send send from
  std::unique_ptr<verbs::Mr> results_mr;
  std::vector<verbs::Sge> sges;  // of the Writes
  std::vector<Write> writes;
  std::size_t next_write = 0;
  std::size_t send_len = 0;                 // octets of the Send buffer
  std::vector<std::uint8_t> rpc_header;     // of a continued Reply
  std::vector<ConstBytes> pieces;           // its Payload stream
  std::optional<Continuation> parts;        // all of it that is not sent
  std::optional<TimePoint> parts_since;     // when its turn to leave came
  std::size_t threshold = 0;                // of its messages
  std::vector<verbs::Sge> send_sges;        // if the Send also gathers from other memory
  std::optional<std::uint32_t> invalidate;  // by the Send
  CallLease lease;

  // Makes the entry ready for the next answer. Vectors keep their room.
  void reset() {
    // Releases the memory that the entry holds. The next answer overwrites the rest.
    reply.results = {};
    reply.buffers.clear();
    results_mr.reset();
    sges.clear();
    writes.clear();
    send_sges.clear();
    parts.reset();
    parts_since.reset();
    invalidate.reset();
    lease.end();
    next_write = send_len = 0;
  }
};

class Responder::AnswerRooms {
 public:
  std::unique_ptr<Outgoing> take() {
    if (free_.empty()) return std::make_unique<Outgoing>();
    std::unique_ptr<Outgoing> room = std::move(free_.back());  // the last one is still in the cache
    free_.pop_back();
    least_free_ = std::min(least_free_, free_.size());
    return room;
  }
  void give_back(std::unique_ptr<Outgoing> room) {
    room->reset();
    free_.push_back(std::move(room));
  }
  bool trim() {
    free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(std::min(least_free_, free_.size())));
    least_free_ = free_.size();
    if (free_.empty()) std::vector<std::unique_ptr<Outgoing>>().swap(free_);
    return !free_.empty();
  }

 private:
  std::vector<std::unique_ptr<Outgoing>> free_;
  std::size_t least_free_ = 0;  // since the last trim
};

inline Responder::Call& Responder::call_at(CallSlot slot) {
  return calls_[index_of(slot)];
}

}  // namespace weft::rpcrdma
