#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ddp/memory_table.h"
#include "rdmap/atomic.h"
#include "rdmap/header.h"
#include "rdmap/inlined_vector.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {

// Sge names len octets of the user's own memory: `key` is the local key, `addr` the virtual address inside its region.
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t len = 0;
  ddp::Stag key;
};

using SgeList = absl::InlinedVector<Sge, 2>;

// ImmediateData holds the octets of an Immediate Data Message (RFC 7306 section 6), in the order given.
using ImmediateData = std::array<std::uint8_t, kImmediateLen>;

enum class SendOp : std::uint8_t {
  kSend,
  kSendInvalidate,
  kRdmaWrite,
  kRdmaRead,
  kImmediate,       // RFC 7306 section 6
  kWriteImmediate,  // an RDMA Write and, right behind it, an Immediate Data Message; one request, one completion
  kAtomic,          // RFC 7306 section 5
  // The last two send nothing. They are carried out in their turn: after all earlier requests were given to the
  // connection, before any later one is.
  kBindWindow,
  kInvalidateWindow,
};

constexpr bool is_local(SendOp op) {
  return op == SendOp::kBindWindow || op == SendOp::kInvalidateWindow;
}
// Whether the operation goes out on queue 1 and takes an ORD slot until its answer (RFC 7306 section 5.2).
constexpr bool is_answered(SendOp op) {
  return op == SendOp::kRdmaRead || op == SendOp::kAtomic;
}
// Whether a stream may lack the operation (StreamConfig::rfc7306).
constexpr bool is_rfc7306(SendOp op) {
  return op == SendOp::kImmediate || op == SendOp::kWriteImmediate || op == SendOp::kAtomic;
}
constexpr bool is_tagged(SendOp op) {
  return op == SendOp::kRdmaWrite || op == SendOp::kWriteImmediate;
}

// SendWr is one work request of the send queue. sg_list is copied. The memory that it names belongs to the stream until
// the caller polls the request's Completion.
struct SendWr {
  std::uint64_t wr_id = 0;
  SendOp op = SendOp::kSend;
  bool signaled = true;                   // unsignaled requests complete silently unless they fail
  bool solicited = false;                 // Send or Immediate Data with Solicited Event (RFC 5040 section 5.3)
  bool fence = false;                     // waits for all earlier Reads and Atomics (RFC 5040 section 5.5)
  std::uint16_t note = 0;                 // the user's own value, like wr_id; the Completion returns it
  SgeList sg_list;                        // source of Sends and Writes, sink of Reads and of an Atomic's 8 octets
  std::vector<std::uint8_t> inline_data;  // used instead of sg_list if not empty (Sends and Writes only)
  ddp::Stag remote_stag;                  // Write: the sink; Read, Atomic: the source; else the STag to invalidate
  std::uint64_t remote_to = 0;
  // ImmediateData with kImmediate and kWriteImmediate, AtomicOperands with kAtomic, WindowBind with kBindWindow.
  std::variant<std::monostate, ImmediateData, AtomicOperands, ddp::WindowBind> args;
};

// is_consistent tells whether the request has all that its operation needs, and nothing else. If not, post_send returns
// kInvalid. Any thread may call it.
bool is_consistent(const SendWr& wr);

// PostedRecv is one untagged buffer: a Send of the peer consumes it.
struct PostedRecv {
  std::uint64_t wr_id = 0;
  SgeList sg_list;
  bool own = false;  // the stream's own: it has no completion
};

// A stream takes its receives from a RecvSource: a queue pair's own queue, or a shared one. It is one of the three
// virtual seams. Only the stream's own loop calls it.
class RecvSource {
 public:
  virtual ~RecvSource() = default;
  // take hands out the oldest posted receive, or nothing if none is posted.
  virtual std::optional<PostedRecv> take() = 0;
};

enum class WorkStatus : std::uint8_t {
  kSuccess,
  kFlushed,               // the stream ended first
  kLocalLength,           // a message exceeded the receive buffer, or the longest legal message
  kLocalProtection,       // an sge named memory that we may not use (any more)
  kLocalOperation,        // a Read or Atomic on a stream whose ORD is 0
  kRemoteAccess,          // the peer refused our Read or Atomic (Terminate, remote protection)
  kRemoteOperation,       // the peer refused our Read or Atomic for another reason
  kRemoteInvalidRequest,  // the peer's Send with Invalidate named an STag that it may not invalidate
  kWindow,                // a bind or a local invalidation that the memory table refused
  kFatal,
};

enum class WorkOp : std::uint8_t { kSend, kRdmaWrite, kRdmaRead, kAtomic, kBindWindow, kInvalidateWindow, kRecv };

// Completion ends exactly one work request.
struct Completion {
  std::uint64_t wr_id = 0;
  WorkOp op = WorkOp::kSend;
  WorkStatus status = WorkStatus::kSuccess;
  std::uint16_t note = 0;                  // SendWr::note; 0 with kRecv
  std::uint32_t byte_len = 0;              // octets received (kRecv) or read (kRdmaRead, kAtomic)
  bool solicited = false;                  // kRecv: the peer asked for a solicited event
  std::optional<ImmediateData> immediate;  // kRecv: the data of the Immediate Data Message that took it
  std::optional<ddp::Stag> invalidated;    // kRecv: a Send with Invalidate took this STag's remote validity
  std::optional<Terminate> terminate;      // the reason, if it was a Terminate of either side
};

enum class PostResult : std::uint8_t {
  kOk,
  kQueueFull,     // StreamConfig::max_send_wr requests are outstanding
  kNotConnected,  // neither established nor in startup: the queue pair itself flushes the request
  kInvalid,  // the request contradicts itself (a length beyond 2^32 - 1, inline data with a Read ...), or it is one
             // of RFC 7306 on a stream without it
};

}  // namespace weft::rdmap
