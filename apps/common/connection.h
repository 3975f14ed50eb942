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

// Connection is one outgoing RDMA connection with a completion queue of its own, for commands that wait for one thing
// at a time. The device and the protection domain outlive it. One thread.
class Connection {
 public:
  // open resolves dst and makes the queue pair; receives can be posted from then on.
  static absl::StatusOr<std::unique_ptr<Connection>> open(verbs::Device& device, verbs::Pd& pd,
                                                          const sockaddr_storage& dst, const verbs::QpCap& cap,
                                                          Progress& progress);
  ~Connection();

  // connect waits until the connection stands. Errors name the peer and what it did: refused, rejected, silent.
  absl::Status connect(const verbs::ConnParam& param, Progress& progress);
  // disconnect sends what was posted, then waits for the end, at most `patience`; stop signals do not shorten it. The
  // device is told that it is slept on: Progress::drive has it poll again.
  void disconnect(std::chrono::milliseconds patience = std::chrono::seconds(5));
  // why says in one line why a completion failed, for the command's last words. What the connection says itself knows
  // most and comes a moment later: it waits for that, at most kLastWords.
  std::string why(const verbs::Wc& wc, Progress& progress);
  static constexpr std::chrono::milliseconds kLastWords{1000};
  // ended takes the connection's events; once it is over it says why in one line.
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

  // Destroyed from the last to the first: the queue pair before its id, both before the queue and the channel.
  verbs::Device* device_ = nullptr;
  sockaddr_storage dst_{};
  std::unique_ptr<verbs::CmChannel> channel_;
  std::unique_ptr<verbs::Cq> cq_;
  std::unique_ptr<verbs::CmId> id_;
  std::unique_ptr<verbs::Qp> qp_;
  verbs::ConnParam peer_param_;
  std::optional<std::string> ended_;
};

// alloc_pd is Device::alloc_pd with the commands' kind of error.
absl::StatusOr<std::unique_ptr<verbs::Pd>> alloc_pd(verbs::Device& device);
absl::StatusOr<std::unique_ptr<verbs::Mr>> reg_mr(verbs::Pd& pd, void* addr, std::size_t length, verbs::Access access);

}  // namespace weft::apps
