#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/bytes.h"
#include "rpcrdma/channel.h"
#include "rpcrdma/client.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v1/receive.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// RequesterCounters: for tests, logs and the curious.
struct RequesterCounters {
  std::uint64_t calls_sent = 0;
  std::uint64_t read_chunks = 0;        // Calls with a Read chunk for their item
  std::uint64_t long_calls = 0;         // Calls through a Position Zero Read chunk
  std::uint64_t write_chunks = 0;       // Write chunks offered
  std::uint64_t reply_chunks = 0;       // Reply chunks offered
  std::uint64_t replies_discarded = 0;  // RFC 8166 section 4.5
};

// Requester is the calling half of RPC-over-RDMA version 1 on one connection (RFC 8166 sections 3.3 to 4.5): a state
// machine over a Channel, without connection manager, clock or thread. Its owner passes it the Channel's completions.
//
// inputs: start, on_receive, on_send_done, on_closed, on_time. outputs: callbacks (only from inputs, never from call),
// next_timeout, and Channel::failure for what must end the connection.
class Requester {
 public:
  struct Config {
    std::uint32_t credits = 32;
    std::chrono::milliseconds call_timeout{60000};
  };

  // pd and channel outlive the requester. first_xid: where XIDs begin; best random.
  Requester(verbs::Pd& pd, Channel& channel, const Config& config, std::uint32_t first_xid);
  ~Requester();

  // As Client::call.
  verbs::Status call(const CallSpec& spec, ReplyCallback done);
  std::size_t num_outstanding() const { return waiting_.size() + sent_.size() + ended_.size(); }

  // start: the connection is there and these are its thresholds, in octets. Until then Calls wait.
  void start(std::size_t call_threshold, std::size_t reply_threshold);
  // on_receive: a Send filled Receive buffer `slot` with `len` octets. The requester posts the buffer again.
  void on_receive(std::uint32_t slot, std::size_t len);
  void on_send_done(std::uint32_t slot);
  // on_closed ends every Call as kDisconnected; further Calls are refused.
  void on_closed(const std::string& why);
  // on_time starts the clocks of new Calls, ends those whose time is over, and runs the callbacks that are due. Returns
  // how many Calls ended.
  std::size_t on_time(verbs::TimePoint now);
  // In the past where on_time has something to do at once.
  std::optional<verbs::TimePoint> next_timeout() const;

  // RPCs that may be under way at once (RFC 8166 section 3.3.1).
  std::uint32_t window() const;
  const RequesterCounters& counters() const { return counters_; }

 private:
  struct Call;
  using Calls = std::list<std::unique_ptr<Call>>;

  void pump();
  enum class Transmitted : std::uint8_t { kSent, kNoRoom, kFailed };
  Transmitted transmit(Call& call);
  void choose_reply_form(Call& call);
  bool register_reply(Call& call);
  bool register_call(Call& call, std::size_t header_len);
  bool add_read_segment(Call& call, std::uint32_t position, ConstBytes octets);
  std::size_t emit(Call& call, MutBytes out);
  bool register_memory(Call& call, const void* octets, std::size_t len, verbs::Access access, Segment& segment);

  void on_rpc_reply(Call& call, ConstBytes payload, const v1::ReceivedReply& received);
  void finish(Calls::iterator at, CallStatus status, std::string text);
  void end(Call& call, const Reply& reply);
  void release(Calls& from, Calls::iterator at);
  Calls::iterator find(std::uint32_t xid);
  std::size_t run_ended();

  verbs::Pd& pd_;
  Channel& channel_;
  Config config_;
  std::uint32_t next_xid_;
  bool started_ = false;
  bool closed_ = false;
  bool dispatching_ = false;  // callbacks run: what they queue is sent afterwards
  std::size_t call_threshold_ = v1::kMinHeader;
  std::size_t reply_threshold_ = v1::kMinHeader;
  std::uint32_t granted_ = 1;  // R1-4.3.3-02
  bool unstamped_ = false;     // some Call has no deadline yet
  verbs::TimePoint now_{};

  Calls waiting_;  // in order of call()
  Calls sent_;     // in order of sending
  Calls ended_;    // their callbacks are due
  Calls spare_;
  std::vector<std::uint32_t> abandoned_;  // XIDs of Calls given up whose Reply would still free a credit
  std::vector<std::uint8_t> scratch_;
  v1::ReceivedReply received_;
  RequesterCounters counters_;
};

}  // namespace weft::rpcrdma
