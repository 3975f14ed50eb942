#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rpcrdma/argument_positions.h"
#include "rpcrdma/call_form.h"
#include "rpcrdma/registrations.h"
#include "rpcrdma/requester.h"

// State that a Requester keeps for a Call. Private to the requester*.cc files.
namespace weft::rpcrdma {

inline constexpr std::size_t kMaxArgumentItems = 64;

struct Requester::Call {
  CallSpec spec;
  ReplyCallback done;
  std::uint64_t id = 0;
  std::uint32_t xid = 0;
  std::optional<TimePoint> deadline;
  bool keeps_xid = false;             // it was sent before, and goes out again under the same XID
  std::uint32_t num_retries = 0;      // short Reply chunk retries (RFC 8267 section 3.1)
  std::size_t min_reply_chunk = 0;    // octets that the Reply chunk must have after a retry
  bool no_read_chunks = false;        // the peer refused its Read chunks
  bool no_write_chunks = false;       // the peer refused its Write chunks
  std::uint64_t discards_before = 0;  // RequesterCounters::replies_discarded at call()
  bool may_have_run = false;          // it was sent before, and not for certain refused before it ran

  // While under way:
  std::optional<TimePoint> sent_at;
  bool was_refused = false;  // before it ran, this time
  ReplyOffer offer;
  std::size_t max_reply = 0;  // octets of a long Reply in parts; 0: not worked out
  CallForm form;
  Message message;
  std::vector<std::uint8_t> head;          // octets of an external Payload stream besides items
  std::vector<std::uint8_t> reply_memory;  // the Reply chunk
  Registrations registrations;             // declared after the memory that they cover, so destroyed before it
  // The Call's Reply has come, and waits until local invalidations have ended.
  std::optional<Arrival> fence;
  std::vector<std::optional<std::size_t>> item_lens;

  // Once ended, until the callback ran:
  CallStatus status = CallStatus::kSuccess;
  bool did_not_run = false;
  std::string text;

  std::size_t rpc_len() const {
    return call_header_len(spec.cred != nullptr ? spec.cred->body.size() : 0,
                           spec.verf != nullptr ? spec.verf->body.size() : 0);
  }
  CallHeaderView rpc() const {
    CallHeaderView rpc{xid, spec.program, spec.version, spec.procedure, {}, {}};
    if (spec.cred != nullptr) rpc.cred = *spec.cred;
    if (spec.verf != nullptr) rpc.verf = *spec.verf;
    return rpc;
  }

  // Undoes the preparations for sending. None of the Call's memory is remotely accessible then.
  void unsend() {
    sent_at.reset();
    was_refused = false;
    offer = {};
    max_reply = 0;
    form = {};
    message.external = false;
    message.inv_handle = 0;
    message.lists.clear();
    registrations.clear();
    fence.reset();
    head.clear();
    item_lens.clear();
  }
  // The handles that the peer may invalidate.
  std::vector<std::uint32_t> invalidatable() const {
    if (message.inv_handle != 0) return {message.inv_handle};
    return registrations.live_handles();
  }
  bool has_xid() const { return keeps_xid || spec.xid.has_value(); }

  void reset() {
    unsend();
    spec = CallSpec{};
    done = nullptr;
    deadline.reset();
    keeps_xid = false;
    num_retries = 0;
    min_reply_chunk = 0;
    no_read_chunks = no_write_chunks = false;
    may_have_run = false;
    text.clear();
  }
  // What a spare Call keeps for the next one.
  std::size_t kept_octets() const { return head.capacity() + reply_memory.capacity(); }
  void drop_memory() {
    head = std::vector<std::uint8_t>();  // {} would keep the memory
    reply_memory = std::vector<std::uint8_t>();
  }
};

}  // namespace weft::rpcrdma
