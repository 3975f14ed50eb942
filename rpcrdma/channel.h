#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/bytes.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// WorkKind: what a work request of a Channel was for.
enum class WorkKind : std::uint8_t { kReceive, kSend, kRead, kWrite };

// Work: the request that a completion belongs to. slot is the Receive's or Send's buffer, or the engine's own number.
struct Work {
  WorkKind kind = WorkKind::kReceive;
  std::uint32_t slot = 0;
};

// Channel is one queue pair with the registered buffers for its Sends and Receives, as the engines see it; requester
// and responder of one connection can share it. wr_ids are (serial << 32 | index into a table of the Channel), so that
// several Channels may share completion queues. It knows no connection manager. One thread.
//
// After a failed post or completion failure() says why; from then on posts are refused and the owner ends the
// connection. Destroy the Qp before the Channel.
class Channel {
 public:
  struct Config {
    std::uint32_t serial = 0;
    std::uint32_t num_receives = 0;
    std::uint32_t num_sends = 0;
    std::size_t receive_len = 1024;  // octets of each Receive buffer
    std::size_t send_len = 1024;
    std::uint32_t max_send_wr = 64;  // depth of the send queue
    std::uint32_t max_send_sge = 4;
  };

  // Allocates and registers the buffers.
  static verbs::Result<std::unique_ptr<Channel>> create(verbs::Pd& pd, const Config& config);

  // What the Qp must be created with.
  verbs::QpInitAttr qp_attr(verbs::Cq& cq) const;
  // attach posts all Receives. The Qp outlives its use here.
  verbs::Status attach(verbs::Qp& qp);
  verbs::Qp* qp() const { return qp_; }
  // detach: the Qp is about to be destroyed.
  void detach() { qp_ = nullptr; }

  static std::uint32_t serial_of(std::uint64_t wr_id) { return static_cast<std::uint32_t>(wr_id >> 32); }
  // on_completion finds what a completion was for and retires it; nothing for failures and for what needs no action.
  std::optional<Work> on_completion(const verbs::Wc& wc);

  ConstBytes received(std::uint32_t slot, std::size_t len) const;
  // The memory of all Receive buffers, for views that may outlive the Channel.
  std::shared_ptr<const void> memory() const { return memory_; }
  // Returns a Receive buffer to the Qp.
  bool post_receive(std::uint32_t slot);

  // A Send buffer for the caller to fill, until it calls give_send (at the latest on the Send's completion).
  std::optional<std::uint32_t> take_send();
  MutBytes send_buffer(std::uint32_t slot) const;
  void give_send(std::uint32_t slot) { free_sends_.push_back(slot); }
  std::uint32_t lkey() const { return mr_->lkey(); }
  // Sends the first `len` octets of a Send buffer.
  bool post_send(std::uint32_t slot, std::size_t len);
  // Sends what `sges` gather, most of it from that Send buffer (R1-5.2.4-06).
  bool post_send(std::uint32_t slot, std::span<const verbs::Sge> sges);

  // Posts an RDMA Read or Write. Unsignaled ones (Writes only) give no Work.
  bool post_rdma(verbs::WrOpcode opcode, std::span<const verbs::Sge> sges, std::uint64_t remote_addr,
                 std::uint32_t rkey, std::uint32_t slot, bool signaled);
  // How many requests the send queue takes now.
  std::uint32_t send_queue_room() const { return config_.max_send_wr - queued_; }
  // Whether a Write posted now should be signaled, lest the queue fill up with requests that report nothing.
  bool wants_signal() const { return unsignaled_ + 1 >= config_.max_send_wr / 4; }
  // Whether requests of the send queue are under way, and a count that grows with each that ended.
  bool busy() const { return queued_ != 0; }
  std::uint64_t progress() const { return progress_; }

  const Config& config() const { return config_; }
  const std::optional<std::string>& failure() const { return failure_; }
  void fail(std::string why);

 private:
  struct Entry {
    Work work;
    std::uint32_t retires = 0;  // requests of the send queue that its completion ends
  };

  Channel(const Config& config) : config_(config) {}
  bool post(const verbs::SendWr& wr, Work work);

  Config config_;
  std::shared_ptr<std::uint8_t[]> memory_;
  std::unique_ptr<verbs::Mr> mr_;
  verbs::Qp* qp_ = nullptr;
  std::vector<std::uint32_t> free_sends_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_entries_;
  std::uint32_t queued_ = 0;      // requests in the send queue that no completion has ended
  std::uint32_t unsignaled_ = 0;  // of these, since the last signaled one
  std::uint64_t progress_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace weft::rpcrdma
