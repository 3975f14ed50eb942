#include "verbs-shim/ibv/device.h"

#include <endian.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "verbs-shim/api/log_line.h"
#include "verbs-shim/ibv/cm.h"
#include "verbs-shim/ibv/cq.h"
#include "verbs-shim/ibv/ibv_device.h"
#include "verbs-shim/ibv/mapping.h"
#include "verbs-shim/ibv/pd.h"
#include "verbs-shim/ibv/qp.h"

namespace weft::verbs::ibv {
namespace {

constexpr std::chrono::milliseconds kPumpInterval{1};
constexpr std::uint32_t kSiwVendor = 0x626d74;
constexpr std::uint32_t kRxeVendor = 0xffffff;
// Turns of a busy loop between two looks at rare events: connection events and asynchronous events.
constexpr unsigned kTurnsPerLook = 64;

}  // namespace

IbvDevice::IbvDevice(ibv_context* context) : context_(context), hub_(AsyncHub::of(context)) {
  hub_->attach(async_);
}

IbvDevice::~IbvDevice() {
  hub_->detach(async_);
  if (private_channel_ != nullptr) ::ibv_destroy_comp_channel(private_channel_);
}

Result<std::unique_ptr<IbvDevice>> IbvDevice::open(ibv_context* context, const IbvConfig& config) {
  std::unique_ptr<IbvDevice> out(new IbvDevice(context));
  if (Status status = out->set_up(config); !status) return status.error();
  return out;
}

Status IbvDevice::set_up(const IbvConfig& config) {
  log_ = config.log;
  constexpr std::uint8_t kPort = 1;
  if (const int err = ::ibv_query_device(context_, &attr_); err != 0) return call_error("ibv_query_device", err);
  if (const int err = ibv_query_port(context_, kPort, &port_); err != 0) return call_error("ibv_query_port", err);
  transport_ = transport_of(*context_->device, port_);
  caps_ = from_ibv(attr_, transport_);
  is_siw_ = attr_.vendor_id == kSiwVendor;
  is_rxe_ = attr_.vendor_id == kRxeVendor && !is_iwarp();
  caps_.max_qp_rd_atom = std::min<std::uint32_t>(caps_.max_qp_rd_atom, config.ird);
  caps_.max_qp_init_rd_atom = std::min<std::uint32_t>(caps_.max_qp_init_rd_atom, config.ord);
  ibv_pd* pd = ::ibv_alloc_pd(context_);
  if (pd == nullptr) return call_error("ibv_alloc_pd on " + name(), errno);
  caps_.max_inline_data = probe_inline(pd);
  ::ibv_dealloc_pd(pd);

  private_channel_ = ::ibv_create_comp_channel(context_);
  if (private_channel_ == nullptr) return call_error("ibv_create_comp_channel on " + name(), errno);
  const bool watched = make_nonblocking(private_channel_->fd) && make_nonblocking(context_->async_fd) &&
                       own_.add(private_channel_->fd) && own_.add(context_->async_fd) && own_.add(async_.wake().fd()) &&
                       epoll_.add(own_.fd()) && async_.open(context_->async_fd);
  if (!watched) return call_error("descriptors of " + name(), errno);
  return {};
}

// Only an attempt tells how much inline data a queue pair may ask for.
std::uint32_t IbvDevice::probe_inline(ibv_pd* pd) const {
  ibv_cq* cq = ::ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  if (cq == nullptr) return 0;
  std::uint32_t found = 0;
  for (const std::uint32_t octets : {1024u, 512u, 256u, 220u, 192u, 160u, 128u, 96u, 80u, 64u, 32u}) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = octets};
    init.qp_type = IBV_QPT_RC;
    ibv_qp* qp = ::ibv_create_qp(pd, &init);
    if (qp == nullptr) continue;
    found = std::max(octets, init.cap.max_inline_data);
    ::ibv_destroy_qp(qp);
    break;
  }
  ::ibv_destroy_cq(cq);
  return found;
}

Result<std::unique_ptr<Pd>> IbvDevice::alloc_pd() {
  ibv_pd* pd = ::ibv_alloc_pd(context_);
  if (pd == nullptr) return call_error("ibv_alloc_pd", errno);
  return std::unique_ptr<Pd>(std::make_unique<IbvPd>(*this, pd));
}

Result<std::unique_ptr<CompChannel>> IbvDevice::create_comp_channel() {
  auto channel = IbvCompChannel::create(*this);
  if (!channel) return channel.error();
  return std::unique_ptr<CompChannel>(std::move(*channel));
}

Result<std::unique_ptr<Cq>> IbvDevice::create_cq(int cqe, CompChannel* channel) {
  auto cq = IbvCq::create(*this, cqe, static_cast<IbvCompChannel*>(channel));
  if (!cq) return cq.error();
  return std::unique_ptr<Cq>(std::move(*cq));
}

Result<std::unique_ptr<CmChannel>> IbvDevice::create_event_channel() {
  auto channel = IbvCmChannel::create(*this);
  if (!channel) return channel.error();
  return std::unique_ptr<CmChannel>(std::move(*channel));
}

Status IbvDevice::watch(int fd) {
  if (epoll_.add(fd)) return {};
  const int err = errno;
  Error error = call_error("a channel's descriptor", err);
  if (err == ENOSPC) error.message += "; more than /proc/sys/fs/epoll/max_user_watches";
  return error;
}

DeviceAttr IbvDevice::query() const {
  DeviceAttr out;
  out.name = name();
  out.transport = transport_;
  out.fw_ver = attr_.fw_ver;
  out.node_guid = be64toh(attr_.node_guid);
  out.vendor_id = attr_.vendor_id;
  out.num_ports = attr_.phys_port_cnt;
  ibv_port_attr port{};
  if (ibv_query_port(context_, 1, &port) != 0) return out;
  out.port_active = port.state == IBV_PORT_ACTIVE;
  constexpr std::uint32_t kMtu256 = 256;  // IBV_MTU_256 is 1, each further one doubles
  if (!is_iwarp() && port.active_mtu >= IBV_MTU_256) out.active_mtu = kMtu256 << (port.active_mtu - IBV_MTU_256);
  return out;
}

std::optional<AsyncEvent> IbvDevice::get_async_event() {
  hub_->drain();
  return async_.take();
}

std::size_t IbvDevice::process(TimePoint /*now*/) {
  std::size_t moved = more_.load(std::memory_order_relaxed) && more_.exchange(false) ? 1 : 0;
  if (num_draining_.load(std::memory_order_relaxed) > 0) moved += pump_draining();
  if (busy_.load(std::memory_order_relaxed) && ++num_turns_ % kTurnsPerLook != 0) return moved;
  std::array<epoll_event, 4> ready;
  const int num = ::epoll_wait(own_.fd(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < num; ++i) {
    const int fd = ready[static_cast<std::size_t>(i)].data.fd;
    if (fd == private_channel_->fd) {
      moved += take_private_events();
    } else if (fd == context_->async_fd) {
      moved += hub_->drain();
    } else {
      async_.wake().lower();
      ++moved;
    }
  }
  return moved;
}

std::optional<TimePoint> IbvDevice::next_timeout() const {
  if (num_draining_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  return std::chrono::steady_clock::now() + kPumpInterval;
}

std::size_t IbvDevice::take_private_events() {
  const std::lock_guard lock(mutex_);
  std::size_t num = 0;
  ibv_cq* raw = nullptr;
  void* context = nullptr;
  while (::ibv_get_cq_event(private_channel_, &raw, &context) == 0) {
    ::ibv_ack_cq_events(raw, 1);
    // With busy polling no caller sleeps: the Cqs stay unarmed, and cost no events, until it ends.
    if (!busy_.load(std::memory_order_relaxed)) ::ibv_req_notify_cq(raw, 0);
    ++num;
  }
  return num;
}

void IbvDevice::set_busy_polling(bool on) {
  if (busy_.exchange(on) == on || on) return;
  arm_all();
}

void IbvDevice::arm_all() {
  const std::lock_guard lock(mutex_);
  bool waiting = false;
  for (IbvCq* cq : without_channel_) {
    ::ibv_req_notify_cq(cq->get(), 0);
    waiting |= cq->pump();  // earlier completions fire no event
  }
  if (waiting) wake_for_more();
}

void IbvDevice::wake_for_more() {
  set_more();
  if (!busy_.load(std::memory_order_relaxed)) async_.wake().raise();
}

void IbvDevice::adopt(IbvCq& cq) {
  const std::lock_guard lock(mutex_);
  without_channel_.insert(&cq);
  ::ibv_req_notify_cq(cq.get(), 0);
}

void IbvDevice::release(IbvCq& cq, const std::function<void()>& destroy) {
  const std::lock_guard lock(mutex_);
  without_channel_.erase(&cq);
  destroy();
}

void IbvDevice::add_draining(IbvQp& qp) {
  const std::lock_guard lock(draining_mutex_);
  draining_.push_back(&qp);
  num_draining_ = draining_.size();
}

void IbvDevice::forget_draining(IbvQp& qp) {
  if (num_draining_ == 0) return;
  const std::lock_guard lock(draining_mutex_);
  std::erase(draining_, &qp);
  num_draining_ = draining_.size();
}

std::size_t IbvDevice::pump_draining() {
  const std::lock_guard lock(draining_mutex_);
  const std::size_t before = draining_.size();
  for (IbvQp* qp : draining_) qp->pump();
  std::erase_if(draining_, [](IbvQp* qp) { return !qp->is_draining(); });
  num_draining_ = draining_.size();
  return before - draining_.size();
}

bool IbvDevice::cm_turn(std::atomic<unsigned>& last) const {
  if (!busy_.load(std::memory_order_relaxed)) return true;
  const unsigned now = num_turns_.load(std::memory_order_relaxed);
  if (now - last < kTurnsPerLook) return false;
  last = now;
  return true;
}

Status IbvDevice::check_same(const ibv_context* other, const std::string& whom) const {
  if (other == context_) return {};
  const std::string theirs = other != nullptr ? ::ibv_get_device_name(other->device) : "another device";
  return Error{EXDEV, whom + " is reached through RDMA device " + theirs + ", but " + name() + " was opened; name " +
                          theirs + " when opening the device, or use an address of " + name()};
}

void IbvDevice::log_turned_away(const std::string& why) {
  constexpr unsigned kFirst = 50, kEvery = 1000;
  const unsigned num = num_logged_++;
  if (num < kFirst || num % kEvery == 0) log_line(log_, LogLevel::kWarn, "connect request turned away: {}", why);
}

}  // namespace weft::verbs::ibv

namespace weft::verbs {
namespace {

constexpr const char* kHowTo = "; a software one on a network interface will do";

Error no_device() {
  if (::access("/sys/class/infiniband", F_OK) != 0 || ::access("/dev/infiniband/rdma_cm", F_OK) != 0) {
    return {ENODEV,
            std::string("this machine has no RDMA device, or not the kernel modules rdma_ucm and ib_uverbs") + kHowTo};
  }
  if (::access("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0) {
    return {EACCES, "this user may not open /dev/infiniband/rdma_cm: udev rules of rdma-core, or group rdma"};
  }
  return {ENODEV, std::string("this machine has no RDMA device") + kHowTo};
}

}  // namespace

Result<std::unique_ptr<Device>> open_ibv_device(const IbvConfig& config) {
  int num = 0;
  ibv_context** list = ::rdma_get_devices(&num);
  if (list == nullptr || num == 0) {
    if (list != nullptr) ::rdma_free_devices(list);
    return no_device();
  }
  ibv_context* found = nullptr;
  std::string names;
  for (int i = 0; i < num; ++i) {
    const std::string name = ::ibv_get_device_name(list[i]->device);
    names += (names.empty() ? "" : ", ") + name;
    if (found == nullptr && (config.name.empty() || config.name == name)) found = list[i];
  }
  ::rdma_free_devices(list);  // frees the list alone; the contexts stay librdmacm's
  if (found == nullptr) return Error{ENODEV, "there is no RDMA device " + config.name + "; there is: " + names};
  auto device = ibv::IbvDevice::open(found, config);
  if (!device) return device.error();
  return std::unique_ptr<Device>(std::move(*device));
}

}  // namespace weft::verbs
