#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/bytes.h"
#include "rpcrdma/rpc_message.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// ArgumentItem is a DDP-eligible argument, left out of CallSpec::args together with its padding: `data` stands behind
// the first `position` octets there. The engine sends it inline where the Call then fits, else as a Read chunk. The
// memory stays the caller's and unchanged until the call ended.
struct ArgumentItem {
  std::size_t position = 0;
  ConstBytes data;
};

// CallSpec is one RPC Call. Everything it views stays valid until the call ended.
struct CallSpec {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  const OpaqueAuth* cred = nullptr;  // null: AUTH_NONE
  ConstBytes args;                   // XDR, without the item
  std::optional<ArgumentItem> item;
  // Where the DDP-eligible result may land; empty for none. A Write chunk is offered when the bound of the whole Reply
  // passes the reply inline threshold.
  MutBytes result_item;
  std::size_t max_results = 0;  // bound of the XDR results without the item (Binding::max_results)
};

enum class CallStatus : std::uint8_t {
  kSuccess,  // accept_stat SUCCESS: results are there
  kProgUnavail,
  kProgMismatch,
  kProcUnavail,
  kGarbageArgs,
  kSystemErr,
  kDenied,    // MSG_DENIED: text says RPC_MISMATCH or which auth_stat
  kErrVers,   // RDMA_ERROR, ERR_VERS (RFC 8166 section 4.5)
  kErrChunk,  // RDMA_ERROR, ERR_CHUNK
  kBadReply,  // a Reply that breaks RFC 8166's rules for this Call
  kTimeout,
  kDisconnected,
  kLocalError,  // memory could not be registered, and the like
};

const char* call_status_str(CallStatus status);

// Reply: how a call ended. Views are valid during the callback only. By then nothing of the caller's memory is remotely
// accessible any more.
struct Reply {
  CallStatus status = CallStatus::kSuccess;
  ConstBytes results;  // XDR; without the item's octets and padding where `item_len` is set
  // Set when a Write chunk was offered and the Call succeeded: how many octets of result_item were filled, 0 included.
  // Of the item nothing is inline then (RFC 8166 section 6.1): a count in the results that differs is a bad Reply.
  std::optional<std::size_t> item_len;
  std::string text;  // for everything but kSuccess: one line
};

using ReplyCallback = std::function<void(const Reply&)>;

struct ClientConfig {
  std::size_t inline_threshold = 4096;  // octets, our Sends and Receives (RFC 8797 makes it known); 1024 to 262144
  std::uint32_t credits = 32;           // asked for with every Call
  std::uint8_t ird = 16;
  std::uint8_t ord = 0;
  std::chrono::milliseconds connect_timeout{10000};
  std::chrono::milliseconds call_timeout{60000};
};

// Client is an RPC-over-RDMA version 1 requester with its connection. Driven by its owner: fd() readable or
// next_timeout() reached -> process(). Calls beyond the peer's credits wait here in order. One thread.
class Client {
 public:
  enum class State : std::uint8_t { kConnecting, kReady, kClosed };

  // Starts to connect to dst (numeric; name resolution is the application's). The device outlives the client.
  static verbs::Result<std::unique_ptr<Client>> connect(verbs::Device& device, const sockaddr_storage& dst,
                                                        const ClientConfig& config);
  // Every call still open ends as kDisconnected, without a callback. Not to be run from a callback.
  ~Client();

  State state() const;
  // Why it is kClosed, in one line.
  const std::string& error() const;

  // call queues one Call; done runs once, from process(), unless the client is destroyed first. Errors: EINVAL (sizes
  // out of range), ENOTCONN.
  verbs::Status call(const CallSpec& spec, ReplyCallback done);
  // Calls queued or sent and not ended.
  std::size_t num_outstanding() const;

  // process drives the device, the connection and the calls; returns what Device::process does, plus calls ended.
  std::size_t process(verbs::TimePoint now);
  std::optional<verbs::TimePoint> next_timeout() const;
  int fd() const;
  void disconnect();

  verbs::QpCounters counters() const;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
