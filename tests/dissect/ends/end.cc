#include "tests/dissect/ends/end.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/address.h"
#include "tests/dissect/ends/driving.h"
#include "tests/dissect/ends/fixed_stags.h"
#include "verbs-shim/api/addr_info.h"
#include "verbs-shim/soft/device.h"

namespace weft::ends {
namespace {

using verbs::Access;
using verbs::CmEventType;

constexpr std::size_t kMaxTexts = 4096;
constexpr std::uint32_t kMaxRequests = 16;
constexpr std::chrono::seconds kResolveTimeout{5};

Access access_of(Rights rights) {
  switch (rights) {
    case Rights::kRead: return Access::kRemoteRead;
    case Rights::kSink: return Access::kLocalWrite;
    case Rights::kWrite:
    case Rights::kForeign: break;
  }
  return Access::kLocalWrite | Access::kRemoteWrite;
}

// 64 octets where the options want them. Tagged offsets are virtual addresses.
std::uint8_t* place(std::uint64_t addr) {
  void* wanted = reinterpret_cast<void*>(static_cast<std::uintptr_t>(addr));
  void* got =
      ::mmap(wanted, kMemoryLen, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != wanted) throw std::runtime_error("the address of the memory is not free");
  auto* octets = static_cast<std::uint8_t*>(got);
  for (std::size_t i = 0; i < kMemoryLen; ++i) octets[i] = static_cast<std::uint8_t>(i);
  return octets;
}

verbs::SoftConfig config_of(const Options& options) {
  verbs::SoftConfig config;
  config.markers = options.markers;
  config.fpdu_limit = options.max_fpdu;
  // The captures have whole messages.
  config.trace = value_of(verbs::open_trace({.path = options.trace, .tagged_len = 0, .other_len = 0}));
  return config;
}

}  // namespace

End::End(const Options& options)
    : options_(options), receives_(std::size_t{options.receives} * options.receive_len), texts_(kMaxTexts) {
  std::vector<std::uint32_t> stags;
  for (const Memory& memory : options.memory) stags.push_back(memory.stag);
  fix_stags(std::move(stags));
  device_ = value_of(verbs::open_soft_device(config_of(options)));
  pd_ = value_of(device_->alloc_pd());
  foreign_pd_ = value_of(device_->alloc_pd());
  register_memory();
  cq_ = value_of(device_->create_cq(static_cast<int>(kMaxRequests + options.receives), nullptr));
  channel_ = value_of(device_->create_event_channel());
}

End::~End() = default;

// The memory of the options comes first: it gets the fixed STags.
void End::register_memory() {
  for (const Memory& memory : options_.memory) {
    verbs::Pd& pd = memory.rights == Rights::kForeign ? *foreign_pd_ : *pd_;
    memory_.push_back(value_of(pd.reg_mr(place(memory.addr), kMemoryLen, access_of(memory.rights))));
    if (memory_.back()->rkey() != memory.stag) throw std::runtime_error("the memory has another STag");
  }
  receives_mr_ = value_of(pd_->reg_mr(receives_.data(), receives_.size(), Access::kLocalWrite));
  texts_mr_ = value_of(pd_->reg_mr(texts_.data(), texts_.size(), Access::kNone));
}

void End::run() {
  const auto addr = value_of(verbs::getaddrinfo(options_.address, options_.port, options_.listen)).front();
  options_.listen ? listen(addr) : connect(addr);
  for (const Step& step : options_.steps) take(step);
  if (!options_.listen && !over_) check(id_->disconnect());
  until([] { return false; });
  // The last octets, a Terminate above all.
  while (device_->process(std::chrono::steady_clock::now()) != 0) continue;
}

void End::listen(const sockaddr_storage& addr) {
  listener_ = value_of(channel_->create_id());
  check(listener_->bind_addr(addr));
  check(listener_->listen(1));
  std::printf("ready rdma=%s\n", address_str(listener_->local_addr()).c_str());
  std::fflush(stdout);
  until([&] { return id_ != nullptr; });
  make_qp();
  check(id_->accept({.private_data = {}, .responder_resources = options_.ird, .initiator_depth = options_.ord}));
  until([&] { return reached_ == CmEventType::kEstablished; });
}

void End::connect(const sockaddr_storage& addr) {
  id_ = value_of(channel_->create_id());
  check(id_->resolve_addr(addr, kResolveTimeout));
  until([&] { return reached_ == CmEventType::kAddrResolved; });
  check(id_->resolve_route(kResolveTimeout));
  until([&] { return reached_ == CmEventType::kRouteResolved; });
  make_qp();
  check(id_->connect({.private_data = {}, .responder_resources = options_.ird, .initiator_depth = options_.ord}));
  until([&] { return reached_ == CmEventType::kEstablished; });
}

void End::make_qp() {
  verbs::QpInitAttr attr;
  attr.send_cq = attr.recv_cq = cq_.get();
  attr.cap.max_send_wr = kMaxRequests;
  attr.cap.max_recv_wr = options_.receives;
  qp_ = value_of(id_->create_qp(*pd_, attr));
  for (std::uint32_t i = 0; i < options_.receives; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(receives_.data()) + std::size_t{i} * options_.receive_len;
    const verbs::Sge sge{at, options_.receive_len, receives_mr_->lkey()};
    check(qp_->post_recv({.wr_id = i, .sg_list = {&sge, 1}}));
  }
}

void End::take(const Step& step) {
  if (over_) return;
  switch (step.kind) {
    case Step::Kind::kReceive: ++num_awaited_; return until([&] { return num_received_ >= num_awaited_; });
    case Step::Kind::kDone: return until([&] { return num_open_ == 0; });
    case Step::Kind::kSend: return post(verbs::WrOpcode::kSend, text_of(step), step);
    case Step::Kind::kWrite: return post(verbs::WrOpcode::kRdmaWrite, text_of(step), step);
    case Step::Kind::kRead: break;
  }
  const auto sink = std::find_if(memory_.begin(), memory_.end(), [&](const auto& mr) {
    return reinterpret_cast<std::uintptr_t>(mr->addr()) == (step.sink & ~std::uint64_t{kMemoryLen - 1});
  });
  if (sink == memory_.end()) throw std::runtime_error("no memory for the sink of a Read");
  post(verbs::WrOpcode::kRdmaRead, {step.sink, kReadLen, (*sink)->lkey()}, step);
}

verbs::Sge End::text_of(const Step& step) {
  if (step.text.size() > texts_.size() - texts_len_) throw std::runtime_error("too much text");
  std::uint8_t* at = texts_.data() + texts_len_;
  std::memcpy(at, step.text.data(), step.text.size());
  texts_len_ += step.text.size();
  return {reinterpret_cast<std::uintptr_t>(at), static_cast<std::uint32_t>(step.text.size()), texts_mr_->lkey()};
}

void End::post(verbs::WrOpcode opcode, const verbs::Sge& sge, const Step& step) {
  verbs::SendWr wr;
  wr.opcode = opcode;
  wr.sg_list = {&sge, 1};
  wr.remote_addr = step.to;
  wr.rkey = step.stag;
  check(qp_->post_send(wr));
  ++num_open_;
}

void End::collect() {
  while (auto event = channel_->get_event()) on_event(std::move(*event));
  verbs::Wc wc[kMaxRequests];
  for (int n = 0; (n = cq_->poll(wc)) > 0;) {
    for (const verbs::Wc& one : std::span(wc).first(static_cast<std::size_t>(n))) {
      // The opcode of a failed one means nothing, and the end of the connection comes with it.
      if (one.status != verbs::WcStatus::kSuccess) continue;
      one.opcode == verbs::WcOpcode::kRecv ? ++num_received_ : --num_open_;
    }
  }
}

void End::on_event(verbs::CmEvent event) {
  reached_ = event.type;
  switch (event.type) {
    case CmEventType::kConnectRequest: id_ = std::move(event.new_id); break;
    case CmEventType::kAddrResolved:
    case CmEventType::kRouteResolved:
    case CmEventType::kEstablished: break;
    default:
      over_ = true;
      std::fprintf(stderr, "%s\n", event.text.c_str());
      break;
  }
}

}  // namespace weft::ends
