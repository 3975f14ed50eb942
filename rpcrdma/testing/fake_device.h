#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "rpcrdma/testing/fake_verbs.h"
#include "verbs-shim/api/cm.h"

// A device on fake verbs whose connections end at the test, for tests of Clients and Servers.
namespace weft::rpcrdma::testing {

class FakeCmId;

// FakeDevice resolves addresses and routes at once. `on_connect` decides the outcome of an attempt to connect.
class FakeDevice final : public verbs::Device {
 public:
  enum class Answer : std::uint8_t { kAccept, kRefuse, kReject, kNone };

  explicit FakeDevice(FakeMemory& memory);
  const verbs::Caps& caps() const override { return caps_; }
  verbs::Result<std::unique_ptr<verbs::Pd>> alloc_pd() override;
  verbs::Result<std::unique_ptr<verbs::CompChannel>> create_comp_channel() override;
  verbs::Result<std::unique_ptr<verbs::Cq>> create_cq(int cqe, verbs::CompChannel* channel) override;
  verbs::Result<std::unique_ptr<verbs::CmChannel>> create_event_channel() override;
  std::size_t process(TimePoint) override {
    if (on_process) on_process();
    return 0;
  }
  std::optional<TimePoint> next_timeout() const override { return {}; }
  int fd() const override { return -1; }

  // The peer's end of the connection that is there now.
  FakeQp& qp() { return *qp_; }
  // Ends the connection: posted requests are flushed, and the client hears of the end. status is the event's, EPROTO
  // for a violation.
  void break_connection(const std::string& text = "broken", int status = 0);
  // The device is taken out of the machine.
  void remove();
  // A peer of this address asks for a connection to the id that listens.
  void ask(const sockaddr_storage& peer = {});
  // The peer that asked last leaves, before its request is answered.
  void leave();
  // The queue that was made last loses completions.
  void overflow_cq() { cq_->overflowed = true; }
  // The queue for the Receives of the connection that was made last loses completions.
  void overflow_receive_cq() { recv_cq_->overflowed = true; }
  void have_shared_receives(std::uint32_t max_wr = 4096);
  void have_windows() { caps_.mem_windows_type2 = caps_.remote_invalidation = true; }
  std::size_t num_attempts() const { return num_attempts_; }
  std::size_t num_disconnects() const { return num_disconnects_; }
  bool has_connection() const { return qp_ != nullptr; }
  // Completion queues that there are now.
  std::size_t num_cqs() const { return num_cqs_; }

  std::function<Answer()> on_connect = [] { return Answer::kAccept; };
  std::function<void()> on_process = {};
  std::vector<std::uint8_t> private_data;       // of the peer's accept
  std::vector<std::uint8_t> sent_private_data;  // that came last
  bool fail_event_channel = false;
  bool fail_cq = false;
  bool answers_disconnect = true;  // with the event that it leads to

 private:
  friend class FakeCmId;
  struct CountedCq;

  FakeMemory& memory_;
  verbs::Caps caps_;
  FakeQp* qp_ = nullptr;
  FakeCmId* id_ = nullptr;
  FakeCmId* listener_ = nullptr;
  FakeCmId* asking_ = nullptr;
  FakeCq* cq_ = nullptr;
  FakeCq* recv_cq_ = nullptr;
  std::uint32_t last_qp_ = 0;
  std::size_t num_attempts_ = 0;
  std::size_t num_disconnects_ = 0;
  std::size_t num_cqs_ = 0;
};

}  // namespace weft::rpcrdma::testing
