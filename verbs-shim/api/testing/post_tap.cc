#include "verbs-shim/api/testing/post_tap.h"

#include <netinet/in.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::verbs::testing {
namespace {

// Held while they hear.
std::mutex the_observers_lock;
std::vector<PostObserver*> the_observers;

template <typename Tell>
void tell_observers(Tell tell) {
  const std::scoped_lock lock(the_observers_lock);
  for (PostObserver* observer : the_observers) tell(*observer);
}

std::atomic<std::size_t> num_ends;

// Held from a post until the observer has heard of it, so that the peer's answer comes later.
std::mutex the_order;

// Which object of ours stands for which of the device's, where events name the latter.
template <typename Inner, typename Outer>
class Stands {
 public:
  void add(Inner* inner, Outer* outer) {
    const std::scoped_lock lock(mutex_);
    outer_of_[inner] = outer;
  }
  void remove(Inner* inner) {
    const std::scoped_lock lock(mutex_);
    outer_of_.erase(inner);
  }
  // Null where none does.
  Outer* find(Inner* inner) {
    const std::scoped_lock lock(mutex_);
    const auto at = outer_of_.find(inner);
    return at == outer_of_.end() ? nullptr : at->second;
  }

 private:
  std::mutex mutex_;
  std::map<Inner*, Outer*> outer_of_;
};

class TappedQp;
class TappedCmId;
struct Known {
  Stands<Qp, TappedQp> qps;
  Stands<CmId, TappedCmId> ids;
};

// Address and port as octets, for comparison.
std::string key_of(const sockaddr_storage& storage) {
  const auto text = [](const auto& part) { return std::string(reinterpret_cast<const char*>(&part), sizeof part); };
  if (storage.ss_family == AF_INET6) {
    const auto& addr = reinterpret_cast<const sockaddr_in6&>(storage);
    return text(addr.sin6_addr) + text(addr.sin6_port);
  }
  const auto& addr = reinterpret_cast<const sockaddr_in&>(storage);
  return text(addr.sin_addr) + text(addr.sin_port);
}

// Accepted: tapped ends that accepted a connection whose other end is not known yet, by the addresses of both.
class Accepted {
 public:
  void add(const CmId& server, const EndTap& tap) {
    const std::scoped_lock lock(mutex_);
    ends_.insert_or_assign({key_of(server.local_addr()), key_of(server.peer_addr())}, tap);
  }
  std::optional<EndTap> take_peer_of(const CmId& client) {
    const std::scoped_lock lock(mutex_);
    const auto found = ends_.extract({key_of(client.peer_addr()), key_of(client.local_addr())});
    if (!found) return {};
    return found.mapped();
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, EndTap> ends_;
};

Accepted the_accepted;

class TappedQp final : public Qp {
 public:
  TappedQp(std::unique_ptr<Qp> qp, const EndTap& tap, std::shared_ptr<Known> known)
      : qp_(std::move(qp)), tap_(tap), known_(std::move(known)) {
    known_->qps.add(qp_.get(), this);
  }
  ~TappedQp() override { known_->qps.remove(qp_.get()); }
  Status post_send(const SendWr& wr) override {
    const std::scoped_lock lock(the_order);
    Status status = qp_->post_send(wr);
    if (status.ok()) tap_.posted(wr);
    return status;
  }
  Status post_recv(const RecvWr& wr) override { return qp_->post_recv(wr); }
  QpState state() const override { return qp_->state(); }
  Result<QpAttr> query() const override { return qp_->query(); }
  Status modify(QpState state) override { return qp_->modify(state); }
  std::uint32_t qp_num() const override { return qp_->qp_num(); }
  QpCounters counters() const override { return qp_->counters(); }
  std::size_t num_unsent() const override { return qp_->num_unsent(); }

 private:
  std::unique_ptr<Qp> qp_;
  EndTap tap_;
  std::shared_ptr<Known> known_;
};

class TappedCmId final : public CmId {
 public:
  TappedCmId(std::unique_ptr<CmId> id, std::shared_ptr<Known> known) : id_(std::move(id)), known_(std::move(known)) {
    known_->ids.add(id_.get(), this);
  }
  ~TappedCmId() override { known_->ids.remove(id_.get()); }
  Status bind_addr(const sockaddr_storage& addr) override { return id_->bind_addr(addr); }
  Status listen(int backlog) override { return id_->listen(backlog); }
  Status resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds timeout) override {
    return id_->resolve_addr(dst, timeout);
  }
  Status resolve_route(std::chrono::milliseconds timeout) override { return id_->resolve_route(timeout); }
  Result<std::unique_ptr<Qp>> create_qp(Pd& pd, const QpInitAttr& attr) override {
    auto made = id_->create_qp(pd, attr);
    if (!made.ok()) return made;
    return std::unique_ptr<Qp>(std::make_unique<TappedQp>(std::move(*made), tap_, known_));
  }
  Status connect(const ConnParam& param) override {
    tap_.connects(param.private_data);
    return id_->connect(param);
  }
  Status accept(const ConnParam& param) override {
    tap_.connects(param.private_data);
    the_accepted.add(*id_, tap_);
    return id_->accept(param);
  }
  void on_established() {
    if (const auto server = the_accepted.take_peer_of(*id_)) tap_.pairs_with(*server);
  }
  Status reject(std::span<const std::uint8_t> private_data) override { return id_->reject(private_data); }
  Status disconnect() override { return id_->disconnect(); }
  sockaddr_storage local_addr() const override { return id_->local_addr(); }
  sockaddr_storage peer_addr() const override { return id_->peer_addr(); }

 private:
  std::unique_ptr<CmId> id_;
  EndTap tap_;
  std::shared_ptr<Known> known_;
};

class TappedCmChannel final : public CmChannel {
 public:
  TappedCmChannel(std::unique_ptr<CmChannel> channel, std::shared_ptr<Known> known)
      : channel_(std::move(channel)), known_(std::move(known)) {}
  int fd() const override { return channel_->fd(); }
  std::optional<CmEvent> get_event() override {
    std::optional<CmEvent> event = channel_->get_event();
    if (!event) return event;
    if (TappedCmId* id = known_->ids.find(event->id)) {
      event->id = id;
      if (event->type == CmEventType::kEstablished) id->on_established();
    }
    if (event->new_id) event->new_id = std::make_unique<TappedCmId>(std::move(event->new_id), known_);
    return event;
  }
  Result<std::unique_ptr<CmId>> create_id() override {
    auto made = channel_->create_id();
    if (!made.ok()) return made;
    return std::unique_ptr<CmId>(std::make_unique<TappedCmId>(std::move(*made), known_));
  }

 private:
  std::unique_ptr<CmChannel> channel_;
  std::shared_ptr<Known> known_;
};

class TappedDevice final : public Device {
 public:
  explicit TappedDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  Device& bare() { return *device_; }

  const Caps& caps() const override { return device_->caps(); }
  Result<std::unique_ptr<Pd>> alloc_pd() override { return device_->alloc_pd(); }
  Result<std::unique_ptr<CompChannel>> create_comp_channel() override { return device_->create_comp_channel(); }
  Result<std::unique_ptr<Cq>> create_cq(int cqe, CompChannel* channel) override {
    return device_->create_cq(cqe, channel);
  }
  Result<std::unique_ptr<CmChannel>> create_event_channel() override {
    auto made = device_->create_event_channel();
    if (!made.ok()) return made;
    return std::unique_ptr<CmChannel>(std::make_unique<TappedCmChannel>(std::move(*made), known_));
  }
  DeviceAttr query() const override { return device_->query(); }
  std::optional<AsyncEvent> get_async_event() override {
    std::optional<AsyncEvent> event = device_->get_async_event();
    if (TappedQp* qp = event ? known_->qps.find(event->qp) : nullptr) event->qp = qp;
    return event;
  }
  int async_fd() override { return device_->async_fd(); }
  std::size_t process(TimePoint now) override { return device_->process(now); }
  std::optional<TimePoint> next_timeout() const override { return device_->next_timeout(); }
  int fd() const override { return device_->fd(); }
  void set_busy_polling(bool on) override { device_->set_busy_polling(on); }

 private:
  std::unique_ptr<Device> device_;
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

}  // namespace

void observe_posts(PostObserver& observer) {
  const std::scoped_lock lock(the_observers_lock);
  the_observers.push_back(&observer);
}

void ignore_posts(PostObserver& observer) {
  const std::scoped_lock lock(the_observers_lock);
  std::erase(the_observers, &observer);
}

EndTap::EndTap() : end_(++num_ends) {}

void EndTap::posted(const SendWr& wr) const {
  tell_observers([&](PostObserver& observer) { observer.on_post(end_, wr); });
}

void EndTap::connects(std::span<const std::uint8_t> private_data) const {
  tell_observers([&](PostObserver& observer) { observer.on_connect(end_, private_data); });
}

void EndTap::pairs_with(const EndTap& server) const {
  tell_observers([&](PostObserver& observer) { observer.on_pair(end_, server.end_); });
}

void EndTap::heard(std::span<const std::uint8_t> octets) const {
  tell_observers([&](PostObserver& observer) { observer.on_arrival(end_, octets); });
}

std::unique_ptr<Device> tapped(std::unique_ptr<Device> device) {
  return std::make_unique<TappedDevice>(std::move(device));
}

Device& bare(Device& device) {
  auto* tapped = dynamic_cast<TappedDevice*>(&device);
  return tapped == nullptr ? device : tapped->bare();
}

}  // namespace weft::verbs::testing
