#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

// A device that counts registrations of memory. Everything else is the device behind it.
namespace weft::bench {

// The protection domain of a CountedDevice. A queue pair belongs to the domain behind it.
class CountedPd final : public verbs::Pd {
 public:
  CountedPd(std::unique_ptr<verbs::Pd> real, std::uint64_t& registrations)
      : real_(std::move(real)), registrations_(registrations) {}
  verbs::Pd& real() { return *real_; }

  verbs::Result<std::unique_ptr<verbs::Mr>> reg_mr(void* addr, std::size_t length, verbs::Access access) override {
    ++registrations_;
    return real_->reg_mr(addr, length, access);
  }
  verbs::Result<std::unique_ptr<verbs::Mw>> alloc_mw() override { return real_->alloc_mw(); }
  verbs::Result<std::unique_ptr<verbs::Srq>> create_srq(const verbs::SrqAttr& attr) override {
    return real_->create_srq(attr);
  }

 private:
  std::unique_ptr<verbs::Pd> real_;
  std::uint64_t& registrations_;
};

// An identifier whose queue pairs get the domain behind a CountedPd. The id behind it names it by its context.
class CountedId final : public verbs::CmId {
 public:
  explicit CountedId(std::unique_ptr<verbs::CmId> real) : real_(std::move(real)) {
    real_->context = reinterpret_cast<std::uintptr_t>(this);
  }
  static verbs::CmId* of(const verbs::CmId* real) {
    return real != nullptr ? reinterpret_cast<CountedId*>(static_cast<std::uintptr_t>(real->context)) : nullptr;
  }

  verbs::Result<std::unique_ptr<verbs::Qp>> create_qp(verbs::Pd& pd, const verbs::QpInitAttr& attr) override {
    return real_->create_qp(static_cast<CountedPd&>(pd).real(), attr);
  }
  verbs::Status bind_addr(const sockaddr_storage& addr) override { return real_->bind_addr(addr); }
  verbs::Status listen(int backlog) override { return real_->listen(backlog); }
  verbs::Status resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds timeout) override {
    return real_->resolve_addr(dst, timeout);
  }
  verbs::Status resolve_route(std::chrono::milliseconds timeout) override { return real_->resolve_route(timeout); }
  verbs::Status connect(const verbs::ConnParam& param) override { return real_->connect(param); }
  verbs::Status accept(const verbs::ConnParam& param) override { return real_->accept(param); }
  verbs::Status reject(std::span<const std::uint8_t> private_data) override { return real_->reject(private_data); }
  verbs::Status disconnect() override { return real_->disconnect(); }
  sockaddr_storage local_addr() const override { return real_->local_addr(); }
  sockaddr_storage peer_addr() const override { return real_->peer_addr(); }

 private:
  std::unique_ptr<verbs::CmId> real_;
};

class CountedChannel final : public verbs::CmChannel {
 public:
  explicit CountedChannel(std::unique_ptr<verbs::CmChannel> real) : real_(std::move(real)) {}
  int fd() const override { return real_->fd(); }
  std::optional<verbs::CmEvent> get_event() override {
    auto event = real_->get_event();
    if (!event) return event;
    event->id = CountedId::of(event->id);
    if (event->new_id) event->new_id = std::make_unique<CountedId>(std::move(event->new_id));
    return event;
  }
  verbs::Result<std::unique_ptr<verbs::CmId>> create_id() override {
    auto id = real_->create_id();
    if (!id.ok()) return id.error();
    return std::unique_ptr<verbs::CmId>(std::make_unique<CountedId>(std::move(id.value())));
  }

 private:
  std::unique_ptr<verbs::CmChannel> real_;
};

class CountedDevice final : public verbs::Device {
 public:
  explicit CountedDevice(std::unique_ptr<verbs::Device> real) : real_(std::move(real)) {}
  std::uint64_t registrations() const { return registrations_; }

  const verbs::Caps& caps() const override { return real_->caps(); }
  verbs::Result<std::unique_ptr<verbs::Pd>> alloc_pd() override {
    auto pd = real_->alloc_pd();
    if (!pd.ok()) return pd.error();
    return std::unique_ptr<verbs::Pd>(std::make_unique<CountedPd>(std::move(pd.value()), registrations_));
  }
  verbs::Result<std::unique_ptr<verbs::CompChannel>> create_comp_channel() override {
    return real_->create_comp_channel();
  }
  verbs::Result<std::unique_ptr<verbs::Cq>> create_cq(int cqe, verbs::CompChannel* channel) override {
    return real_->create_cq(cqe, channel);
  }
  verbs::Result<std::unique_ptr<verbs::CmChannel>> create_event_channel() override {
    auto channel = real_->create_event_channel();
    if (!channel.ok()) return channel.error();
    return std::unique_ptr<verbs::CmChannel>(std::make_unique<CountedChannel>(std::move(channel.value())));
  }
  verbs::DeviceAttr query() const override { return real_->query(); }
  std::optional<verbs::AsyncEvent> get_async_event() override { return real_->get_async_event(); }
  int async_fd() override { return real_->async_fd(); }
  std::size_t process(TimePoint now) override { return real_->process(now); }
  std::optional<TimePoint> next_timeout() const override { return real_->next_timeout(); }
  int fd() const override { return real_->fd(); }
  void set_busy_polling(bool on) override { real_->set_busy_polling(on); }

 private:
  std::unique_ptr<verbs::Device> real_;
  std::uint64_t registrations_ = 0;
};

}  // namespace weft::bench
