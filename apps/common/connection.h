#pragma once

#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "apps/common/progress.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

namespace weft::apps {

// Connection is one outgoing RDMA connection with its own completion queue, for commands that wait for one event at a
// time. The device and the protection domain outlive it. One thread uses it.
class Connection {
 public:
  // open resolves dst and makes the queue pair. Receives can be posted afterwards.
  static absl::StatusOr<std::unique_ptr<Connection>> open(verbs::Device& device, verbs::Pd& pd,
                                                          const sockaddr_storage& dst, const verbs::QpCap& cap,
                                                          Progress& progress);
  ~Connection();

  // connect waits until the connection is established. Errors name the peer and its answer: refused, rejected, silent.
  absl::Status connect(const verbs::ConnParam& param, Progress& progress);
  // disconnect sends the posted requests, then waits for the end, at most `patience`. Stop signals do not shorten this
  // time. It tells the device that the thread sleeps; Progress::drive makes the device poll again.
  void disconnect(std::chrono::milliseconds patience = std::chrono::seconds(5));
  // why gives the reason of a failed completion in one line, for the command's last message. The connection's own end
  // gives the best reason and comes a moment later. why waits for it, at most kLastWords.
  std::string why(const verbs::Wc& wc, Progress& progress);
  static constexpr std::chrono::milliseconds kLastWords{1000};
  // ended takes the connection's events. Once the connection is over, it returns the reason in one line.
  const std::optional<std::string>& ended();

  verbs::Qp& qp() { return *qp_; }
  verbs::Cq& cq() { return *cq_; }
  // The peer's private data from its accept, or its reject.
  const verbs::ConnParam& peer_param() const { return peer_param_; }

 private:
  Connection() = default;
  absl::Status create(verbs::Device& device);
  absl::Status wait_for(verbs::CmEventType wanted, Progress& progress);
  absl::Status failed(const std::string& why) const;

  // The members are destroyed from last to first: the queue pair before its id, both before the queue and the channel.
  verbs::Device* device_ = nullptr;
  sockaddr_storage dst_{};
  std::unique_ptr<verbs::CmChannel> channel_;
  std::unique_ptr<verbs::Cq> cq_;
  std::unique_ptr<verbs::CmId> id_;
  std::unique_ptr<verbs::Qp> qp_;
  verbs::ConnParam peer_param_;
  std::optional<std::string> ended_;
};

// alloc_pd is Device::alloc_pd with an error for commands.
absl::StatusOr<std::unique_ptr<verbs::Pd>> alloc_pd(verbs::Device& device);
absl::StatusOr<std::unique_ptr<verbs::Mr>> reg_mr(verbs::Pd& pd, void* addr, std::size_t length, verbs::Access access);

}  // namespace weft::apps
