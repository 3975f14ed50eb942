#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/bytes.h"
#include "rpcrdma/message_pool.h"
#include "rpcrdma/receive_pool.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// WorkKind: what a work request of a Channel was for.
enum class WorkKind : std::uint8_t { kReceive, kSend, kRead, kWrite, kInvalidate };

// Work: the request that a completion belongs to. slot is the Receive's or Send's buffer, or the engine's own number.
struct Work {
  WorkKind kind = WorkKind::kReceive;
  std::uint32_t slot = 0;
  std::optional<std::uint32_t> invalidated = {};  // kReceive: the handle that the Send invalidated
};

// Extra Receives over the credits: one for a Send that crosses a credit update, one while another is processed.
inline constexpr std::uint32_t kExtraReceives = 2;

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
    // Where they come from; null: memory of the Channel's own. With `receives`, num_receives is how many it reserves to
    // begin with, with `sends` num_sends how many it takes at most at once.
    ReceivePool* receives = nullptr;
    MessagePool* sends = nullptr;
    std::uint32_t max_send_wr = 64;  // depth of the send queue
    std::uint32_t max_send_sge = 4;
  };

  // Allocates and registers the buffers, or reserves its share of Receives.
  static verbs::Result<std::unique_ptr<Channel>> create(verbs::Pd& pd, const Config& config);

  // What the Qp must be created with. receive_cq: that of shared Receives.
  verbs::QpInitAttr qp_attr(verbs::Cq& cq, verbs::Cq* receive_cq = nullptr) const;
  ~Channel();
  // attach posts all Receives. The Qp outlives its use here.
  verbs::Status attach(verbs::Qp& qp);
  verbs::Qp* qp() const { return qp_; }
  // detach: the Qp is about to be destroyed.
  void detach() { qp_ = nullptr; }

  static std::uint32_t serial_of(std::uint64_t wr_id) { return static_cast<std::uint32_t>(wr_id >> 32); }
  // on_completion finds what a completion was for and retires it; nothing for failures and for what needs no action.
  std::optional<Work> on_completion(const verbs::Wc& wc);

  ConstBytes received(std::uint32_t slot, std::size_t len) const;
  // For views of Receive buffers that may outlive the Channel. To be let go in its thread.
  std::shared_ptr<const void> memory() const;
  // Returns a Receive buffer to the Qp.
  bool post_receive(std::uint32_t slot);
  // Has so many Receives there for the peer from now on (R1-4.3.1-09); false where it stays as it was. A peer that
  // fills more than that and kExtraReceives takes those of others: the Channel fails.
  bool set_share(std::uint32_t num);
  std::uint32_t share() const { return share_; }
  // Ends it for a peer that takes more of them than is its share.
  void fail_overrun(std::string why);
  bool overrun() const { return overrun_; }

  // A Send buffer for the caller to fill, until it calls give_send (at the latest on the Send's completion).
  std::optional<std::uint32_t> take_send();
  MutBytes send_buffer(std::uint32_t slot) const;
  void give_send(std::uint32_t slot);
  std::uint32_t send_lkey(std::uint32_t slot) const;
  // Sends the first `len` octets of a Send buffer.
  bool post_send(std::uint32_t slot, std::size_t len);
  // Sends what `sges` gather, most of it from that Send buffer (R1-5.2.4-06). invalidate: a handle of the peer's, for a
  // Send with Invalidate.
  bool post_send(std::uint32_t slot, std::span<const verbs::Sge> sges, std::optional<std::uint32_t> invalidate = {});

  // Posts an RDMA Read or Write. Unsignaled ones (Writes only) give no Work.
  bool post_rdma(verbs::WrOpcode opcode, std::span<const verbs::Sge> sges, std::uint64_t remote_addr,
                 std::uint32_t rkey, std::uint32_t slot, bool signaled);
  // Binds a memory window, which gives no Work.
  bool post_bind(const verbs::MwBind& bind);
  // Invalidates a window of ours. Unsignaled ones give no Work.
  bool post_invalidate(std::uint32_t handle, std::uint32_t slot, bool signaled);
  // How many requests the send queue takes now.
  std::uint32_t send_queue_room() const { return config_.max_send_wr - queued_; }
  // Whether a Write posted now should be signaled, lest the queue fill up with requests that report nothing.
  bool wants_signal() const { return unsignaled_ + 1 >= config_.max_send_wr / 4; }
  // Whether requests of the send queue are under way, and a count that grows with each that ended.
  bool busy() const { return queued_ != 0; }
  std::uint64_t progress() const { return progress_; }

  const Config& config() const { return config_; }
  // The slot of the RDMA Read that failed because the peer does not own what it names.
  std::optional<std::uint32_t> refused_read() const { return refused_read_; }
  // The same of a Write, where its completion says so (InfiniBand; on iWARP CmEvent::refused_write may).
  std::optional<std::uint32_t> refused_write() const { return refused_write_; }
  const std::optional<std::string>& failure() const { return failure_; }
  void fail(std::string why);
  // fail_violation is fail where the peer broke a rule, so that another connection may well end the same way.
  void fail_violation(std::string why);
  bool violated() const { return violated_; }
  // Whether failure() is what a completion said: the connection manager may still tell more.
  bool failed_by_completion() const { return failed_by_completion_; }

 private:
  struct Entry {
    Work work;
    std::uint32_t retires = 0;  // requests of the send queue that its completion ends
  };

  Channel(const Config& config) : config_(config) {}
  bool post(const verbs::SendWr& wr, Work work);
  verbs::Status make_buffers(verbs::Pd& pd);
  std::optional<Work> on_shared_receive(std::uint32_t buffer);
  void on_refused(std::uint32_t index);
  // Of a share, what is beyond the one that the connection began with.
  std::uint32_t grown(std::uint32_t share) const;

  Config config_;
  std::shared_ptr<std::uint8_t[]> memory_;
  std::unique_ptr<verbs::Mr> mr_;
  std::uint8_t* first_send_ = nullptr;
  verbs::Qp* qp_ = nullptr;
  std::vector<std::uint32_t> free_sends_;
  // Of shared buffers: where in the pool each slot's is.
  std::vector<std::uint32_t> sends_;
  std::vector<std::uint32_t> receives_;
  std::vector<std::uint32_t> free_receives_;
  std::shared_ptr<ReceivePool::Lease> lease_;
  std::uint32_t share_ = 0;
  bool overrun_ = false;
  std::optional<std::uint32_t> refused_read_, refused_write_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_entries_;
  std::uint32_t queued_ = 0;      // requests in the send queue that no completion has ended
  std::uint32_t unsignaled_ = 0;  // of these, since the last signaled one
  std::uint64_t progress_ = 0;
  std::optional<std::string> failure_;
  bool violated_ = false;  // failure_ came from fail_violation
  bool failed_by_completion_ = false;
};

}  // namespace weft::rpcrdma
