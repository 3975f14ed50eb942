#include "rpcrdma/testing/fake_device.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weft::rpcrdma::testing {

namespace {

constexpr std::uint32_t kMostEntries = 4096;  // of a queue

class FakeCompChannel final : public verbs::CompChannel {
 public:
  int fd() const override { return -1; }
  verbs::Cq* get_event() override { return nullptr; }
};

using Events = std::deque<verbs::CmEvent>;

}  // namespace

// Counts among the device's queues while it is there.
struct FakeDevice::CountedCq final : verbs::Cq {
  explicit CountedCq(FakeDevice& d) : device(d) { ++device.num_cqs_; }
  ~CountedCq() override { --device.num_cqs_; }
  int poll(std::span<verbs::Wc> wc) override { return cq.poll(wc); }
  verbs::Status req_notify(bool solicited_only) override { return cq.req_notify(solicited_only); }
  FakeDevice& device;
  FakeCq cq;
};

class FakeCmId final : public verbs::CmId {
 public:
  FakeCmId(FakeDevice& device, std::shared_ptr<Events> events) : device_(device), events_(std::move(events)) {}
  ~FakeCmId() override {
    std::erase_if(*events_, [this](const verbs::CmEvent& event) { return event.id == this; });
    if (device_.id_ == this) device_.id_ = nullptr;
    if (device_.listener_ == this) device_.listener_ = nullptr;
    if (device_.asking_ == this) device_.asking_ = nullptr;
  }

  verbs::Status bind_addr(const sockaddr_storage&) override { return {}; }
  verbs::Status listen(int) override {
    device_.listener_ = this;
    return {};
  }
  verbs::Status resolve_addr(const sockaddr_storage&, std::chrono::milliseconds) override {
    push(verbs::CmEventType::kAddrResolved);
    return {};
  }
  verbs::Status resolve_route(std::chrono::milliseconds) override {
    push(verbs::CmEventType::kRouteResolved);
    return {};
  }
  verbs::Result<std::unique_ptr<verbs::Qp>> create_qp(verbs::Pd&, const verbs::QpInitAttr& attr) override;
  verbs::Status connect(const verbs::ConnParam&) override;
  verbs::Status accept(const verbs::ConnParam&) override {
    device_.id_ = this;
    return {};
  }
  verbs::Status reject(std::span<const std::uint8_t>) override { return {}; }
  verbs::Status disconnect() override {
    ++device_.num_disconnects_;
    if (device_.answers_disconnect) push(verbs::CmEventType::kDisconnected);
    return {};
  }
  sockaddr_storage local_addr() const override { return {}; }
  sockaddr_storage peer_addr() const override { return peer_; }

  void push_request(const sockaddr_storage& peer) {
    verbs::CmEvent event;
    event.type = verbs::CmEventType::kConnectRequest;
    event.id = this;
    auto id = std::make_unique<FakeCmId>(device_, events_);
    id->peer_ = peer;
    device_.asking_ = id.get();
    event.new_id = std::move(id);
    event.param.responder_resources = event.param.initiator_depth = 16;
    events_->push_back(std::move(event));
  }
  void push(verbs::CmEventType type, std::string text = {}, std::vector<std::uint8_t> private_data = {},
            int status = 0) {
    verbs::CmEvent event;
    event.type = type;
    event.id = this;
    event.status = status;
    event.text = std::move(text);
    event.param.private_data = std::move(private_data);
    events_->push_back(std::move(event));
  }

 private:
  // Tells the device when it goes.
  struct CountedQp final : verbs::Qp {
    CountedQp(FakeDevice& d, FakeCq& cq) : device(d), qp(d.memory_, cq) { device.qp_ = &qp; }
    ~CountedQp() override {
      if (device.qp_ == &qp) device.qp_ = nullptr;
    }
    verbs::Status post_send(const verbs::SendWr& wr) override { return qp.post_send(wr); }
    verbs::Status post_recv(const verbs::RecvWr& wr) override { return qp.post_recv(wr); }
    verbs::QpState state() const override { return qp.state(); }
    std::uint32_t qp_num() const override { return qp.qp_num(); }
    verbs::QpCounters counters() const override {
      verbs::QpCounters counters;
      counters.sends_tx = qp.num_sends;
      return counters;
    }
    FakeDevice& device;
    FakeQp qp;
  };

  FakeDevice& device_;
  std::shared_ptr<Events> events_;
  verbs::testing::EndTap tap_;
  sockaddr_storage peer_{};
};

verbs::Result<std::unique_ptr<verbs::Qp>> FakeCmId::create_qp(verbs::Pd&, const verbs::QpInitAttr& attr) {
  // All Cqs of this device are CountedCqs.
  auto counted = std::make_unique<CountedQp>(device_, static_cast<FakeDevice::CountedCq&>(*attr.send_cq).cq);
  counted->qp.number = ++device_.last_qp_;
  counted->qp.max_sge = attr.cap.max_send_sge;
  counted->qp.srq = static_cast<FakeSrq*>(attr.srq);
  device_.recv_cq_ = counted->qp.recv_cq = &static_cast<FakeDevice::CountedCq&>(*attr.recv_cq).cq;
  return std::unique_ptr<verbs::Qp>(std::move(counted));
}

verbs::Status FakeCmId::connect(const verbs::ConnParam& param) {
  ++device_.num_attempts_;
  device_.sent_private_data = param.private_data;
  tap_.connects(param.private_data);
  switch (device_.on_connect()) {
    case FakeDevice::Answer::kAccept:
      device_.id_ = this;
      push(verbs::CmEventType::kEstablished, {}, device_.private_data);
      break;
    case FakeDevice::Answer::kRefuse: push(verbs::CmEventType::kUnreachable, "refused"); break;
    case FakeDevice::Answer::kReject: push(verbs::CmEventType::kRejected, "not now"); break;
    case FakeDevice::Answer::kNone: device_.id_ = this; break;
  }
  return {};
}

namespace {

class FakeCmChannel final : public verbs::CmChannel {
 public:
  explicit FakeCmChannel(FakeDevice& device) : device_(device) {}
  int fd() const override { return -1; }
  std::optional<verbs::CmEvent> get_event() override {
    if (events_->empty()) return {};
    verbs::CmEvent event = std::move(events_->front());
    events_->pop_front();
    return event;
  }
  verbs::Result<std::unique_ptr<verbs::CmId>> create_id() override {
    return std::unique_ptr<verbs::CmId>(new FakeCmId(device_, events_));
  }

 private:
  FakeDevice& device_;
  std::shared_ptr<Events> events_ = std::make_shared<Events>();
};

}  // namespace

FakeDevice::FakeDevice(FakeMemory& memory) : memory_(memory) {
  caps_.max_qp_wr = kMostEntries;
  caps_.max_sge = 16;
  caps_.max_cqe = kMostEntries;
  caps_.max_qp_rd_atom = caps_.max_qp_init_rd_atom = 16;
  caps_.max_private_data = 512;
}

verbs::Result<std::unique_ptr<verbs::Pd>> FakeDevice::alloc_pd() {
  return std::unique_ptr<verbs::Pd>(new FakePd(memory_));
}

verbs::Result<std::unique_ptr<verbs::CompChannel>> FakeDevice::create_comp_channel() {
  return std::unique_ptr<verbs::CompChannel>(new FakeCompChannel);
}

verbs::Result<std::unique_ptr<verbs::Cq>> FakeDevice::create_cq(int, verbs::CompChannel*) {
  if (fail_cq) return verbs::Error{ENOMEM, "no completion queue"};
  auto made = std::make_unique<CountedCq>(*this);
  cq_ = &made->cq;
  return std::unique_ptr<verbs::Cq>(std::move(made));
}

verbs::Result<std::unique_ptr<verbs::CmChannel>> FakeDevice::create_event_channel() {
  if (fail_event_channel) return verbs::Error{EMFILE, "no descriptor"};
  return std::unique_ptr<verbs::CmChannel>(new FakeCmChannel(*this));
}

void FakeDevice::have_shared_receives(std::uint32_t max_wr) {
  caps_.max_srq = 1;
  caps_.max_srq_wr = max_wr;
  caps_.max_cqe = std::max(caps_.max_cqe, max_wr);
}

void FakeDevice::remove() {
  qp_->break_connection();
  id_->push(verbs::CmEventType::kDeviceRemoval, "taken away");
}

void FakeDevice::ask(const sockaddr_storage& peer) {
  listener_->push_request(peer);
}

void FakeDevice::leave() {
  asking_->push(verbs::CmEventType::kDisconnected);
}

void FakeDevice::break_connection(const std::string& text, int status) {
  if (!qp_->broken()) qp_->break_connection();
  id_->push(verbs::CmEventType::kDisconnected, text, {}, status);
}

}  // namespace weft::rpcrdma::testing
