#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "rpcrdma/message_pool.h"
#include "rpcrdma/receive_pool.h"
#include "rpcrdma/slots.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// WorkKind: the purpose of a work request of an Endpoint.
enum class WorkKind : std::uint8_t { kReceive, kSend, kRead, kWrite, kInvalidate };

// Work: the request that a completion belongs to.
class Work {
 public:
  Work() = default;
  static Work receive_in(ReceiveSlot slot) { return {WorkKind::kReceive, index_of(slot)}; }
  static Work send_from(SendSlot slot) { return {WorkKind::kSend, index_of(slot)}; }
  static Work read_for(CallSlot slot) { return {WorkKind::kRead, index_of(slot)}; }
  static Work write_for(SendSlot slot) { return {WorkKind::kWrite, index_of(slot)}; }
  static Work invalidate_for(ReceiveSlot slot) { return {WorkKind::kInvalidate, index_of(slot)}; }

  WorkKind kind() const { return kind_; }
  // kReceive: the buffer that was filled. kInvalidate: the buffer of the Reply that waits for the invalidation.
  ReceiveSlot receive() const { return ReceiveSlot{index_}; }
  // kSend: the buffer that was sent. kWrite: the buffer of the Reply that follows.
  SendSlot send() const { return SendSlot{index_}; }
  // kRead: the Call whose chunk it pulls.
  CallSlot call() const { return CallSlot{index_}; }
  std::uint32_t index() const { return index_; }

  std::optional<std::uint32_t> invalidated;  // kReceive: the handle that the Send invalidated

 private:
  Work(WorkKind kind, std::uint32_t index) : kind_(kind), index_(index) {}
  WorkKind kind_ = WorkKind::kReceive;
  std::uint32_t index_ = 0;
};

// Extra Receives beyond the credits: one for a Send that crosses a credit update, one while another message is
// processed.
inline constexpr std::uint32_t kExtraReceives = 2;

// Endpoint is one queue pair with the registered buffers for its Sends and Receives, as the engines see it. The
// requester and the responder of one connection can share it. wr_ids are (serial << 32 | index into a table of the
// Endpoint), so several Endpoints may share completion queues. It knows no connection manager. One thread.
//
// After a failed post or completion, failure() gives the reason. From then on posts are refused, and the owner ends the
// connection. Destroy the Qp before the Endpoint.
class Endpoint {
 public:
  struct Config {
    std::uint32_t serial = 0;
    std::uint32_t num_receives = 0;
    std::uint32_t num_sends = 0;
    std::size_t receive_len = 1024;  // octets of each Receive buffer
    std::size_t send_len = 1024;
    // Pools that the buffers come from; null: the Endpoint has its own pools. With `receives`, num_receives is the
    // number that the Endpoint reserves at first. With `sends`, num_sends is the most that it takes at once.
    ReceivePool* receives = nullptr;
    std::string address = {};  // that shared Receives count for (ReceivePool::grown)
    MessagePool* sends = nullptr;
    std::uint32_t max_send_wr = 64;  // depth of the send queue
    std::uint32_t max_send_sge = 4;
  };

  // Reserves its share of shared Receives.
  static verbs::Result<std::unique_ptr<Endpoint>> create(verbs::Pd& pd, const Config& config);

  // Attributes to create the Qp with. receive_cq: the queue of shared Receives.
  verbs::QpInitAttr qp_attr(verbs::Cq& cq, verbs::Cq* receive_cq = nullptr) const;
  ~Endpoint();
  // attach posts all Receives if they are the Endpoint's own. The Qp outlives the Endpoint's use of it.
  verbs::Status attach(verbs::Qp& qp);
  verbs::Qp* qp() const { return qp_; }
  // detach: the Qp is about to be destroyed.
  void detach() { qp_ = nullptr; }

  static std::uint32_t serial_of(std::uint64_t wr_id) { return static_cast<std::uint32_t>(wr_id >> 32); }
  // on_completion finds the Work of a completion and retires it. Empty for failures and for completions that need no
  // action.
  std::optional<Work> on_completion(const verbs::Wc& wc);

  ConstBytes received(ReceiveSlot slot, std::size_t len) const;
  // Keeps the memory of Receive buffers for views that may outlive the Endpoint. Release it in the Endpoint's thread.
  std::shared_ptr<const void> memory() const;
  // Returns a Receive buffer to the Qp.
  bool post_receive(ReceiveSlot slot);
  // Provides so many Receives for the peer from now on (R1-4.3.1-09). False: the share is unchanged. A peer that fills
  // more than its share and kExtraReceives takes the Receives of other peers: the Endpoint fails.
  bool set_share(std::uint32_t num);
  std::uint32_t share() const { return share_; }
  // Receives for the peer's messages that hold none now.
  std::uint32_t num_ready() const;
  // How many Receives hold messages.
  std::uint32_t num_held() const { return num_held_; }
  // Fails the Endpoint because the peer takes more Receives than its share.
  void fail_overrun(std::string why);
  bool overrun() const { return overrun_; }

  // Takes a Send buffer for the caller to fill. The caller keeps it until give_send (at the latest on the Send's
  // completion).
  std::optional<SendSlot> take_send();
  MutBytes send_buffer(SendSlot slot) const;
  void give_send(SendSlot slot);
  std::uint32_t send_lkey(SendSlot slot) const;
  // Sends the first `len` octets of a Send buffer.
  bool post_send(SendSlot slot, std::size_t len);
  // Sends the octets that `sges` gather, most of them from that Send buffer (R1-5.2.4-06). invalidate: a handle of the
  // peer, for a Send with Invalidate.
  bool post_send(SendSlot slot, std::span<const verbs::Sge> sges, std::optional<std::uint32_t> invalidate = {});

  // Posts an RDMA Read of a Call's chunk.
  bool post_read(std::span<const verbs::Sge> sges, std::uint64_t remote_addr, std::uint32_t rkey, CallSlot call);
  // Posts an RDMA Write for the Reply in that Send buffer. An unsignaled Write gives no Work.
  bool post_write(std::span<const verbs::Sge> sges, std::uint64_t remote_addr, std::uint32_t rkey, SendSlot reply,
                  bool signaled);
  // Binds a memory window. The bind gives no Work.
  bool post_bind(const verbs::MwBind& bind);
  // Invalidates a window of this end. An unsignaled invalidation gives no Work.
  bool post_invalidate(std::uint32_t handle, ReceiveSlot reply, bool signaled);
  // How many requests the send queue takes now.
  std::uint32_t send_queue_room() const { return config_.max_send_wr - queued_; }
  // Whether the next Write should be signaled, so that the queue does not fill up with requests that report nothing.
  bool wants_signal() const { return unsignaled_ + 1 >= config_.max_send_wr / 4; }
  // busy: whether requests of the send queue are under way. progress: a count that grows with each request that ended.
  bool busy() const { return queued_ != 0; }
  std::uint64_t progress() const { return progress_; }
  // Octets that RDMA Reads have brought, and that Sends and Writes have taken to the peer; as they move, or request by
  // request where the queue pair does not count them. Octets that TCP has taken and not sent do not count. Their
  // headers count against octets_pushed, so it may become a little less.
  std::uint64_t octets_pulled() const;
  std::uint64_t octets_pushed() const;

  // trim gives back the memory of tables that nothing is in now: for a connection at rest.
  void trim();

  const Config& config() const { return config_; }
  // The Call whose RDMA Read failed because the peer does not own the memory that the Read names.
  std::optional<CallSlot> refused_read() const { return refused_read_; }
  // The same for a Write and its Reply, if the completion says so (InfiniBand; on iWARP CmEvent::refused_write may).
  std::optional<SendSlot> refused_write() const { return refused_write_; }
  const std::optional<std::string>& failure() const { return failure_; }
  void fail(std::string why);
  // fail_violation is fail after the peer broke a rule: another connection may well end the same way.
  void fail_violation(std::string why);
  bool violated() const { return violated_; }
  // Whether failure() comes from a completion: the connection manager may still give more details.
  bool failed_by_completion() const { return failed_by_completion_; }

 private:
  struct Entry {
    Work work;
    std::uint32_t retires = 0;  // requests of the send queue that its completion ends
    std::uint64_t octets = 0;   // of these
  };

  Endpoint(verbs::Pd& pd, const Config& config);
  bool reserve_own_buffers();
  bool post(const verbs::SendWr& wr, Work work);
  bool post_rdma(verbs::WrOpcode opcode, std::span<const verbs::Sge> sges, std::uint64_t remote_addr,
                 std::uint32_t rkey, Work work, bool signaled);
  const MessagePool& receive_pool() const { return own_receives_ ? *own_receives_ : config_.receives->buffers(); }
  std::optional<Work> on_shared_receive(std::uint32_t buffer);
  void on_refused(std::uint32_t index);

  Config config_;
  std::unique_ptr<MessagePool> own_receives_, own_sends_;  // null: shared ones
  MessagePool* send_pool_;
  verbs::Qp* qp_ = nullptr;
  // For each slot the number of its buffer in the pool, and the slots without a buffer.
  std::vector<std::uint32_t> sends_, free_sends_;
  std::vector<std::uint32_t> receives_, free_receives_;
  std::shared_ptr<ReceivePool::Lease> lease_;
  Ledger::Client receives_client_;
  Lease grown_;  // the part of the share beyond the share that the connection began with
  std::uint32_t share_ = 0;
  std::uint32_t num_held_ = 0;  // Receives that hold messages
  bool overrun_ = false;
  std::optional<CallSlot> refused_read_;
  std::optional<SendSlot> refused_write_;
  // Signaled requests of the send queue: as many entries as there were at once since trim, and those in no use.
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_entries_;
  std::uint32_t queued_ = 0;      // requests in the send queue that no completion has ended
  std::uint32_t unsignaled_ = 0;  // of queued_, since the last signaled request
  std::uint64_t unsignaled_octets_ = 0;
  std::uint64_t progress_ = 0;
  std::uint64_t pulled_ = 0, pushed_ = 0;  // octets of requests that ended
  std::optional<std::string> failure_;
  bool violated_ = false;  // failure_ came from fail_violation
  bool failed_by_completion_ = false;
};

}  // namespace weft::rpcrdma
