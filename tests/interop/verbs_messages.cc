// A program over the verbs API that speaks the protocols of rdma-core's rdma_server and ucmatose: NUM Sends of SIZE
// octets each way over one connection. The connecting end may speak first (rdma_client), or the listener (ucmatose).
//
//   verbs_messages ADDR PORT NUM SIZE first|second           connects
//   verbs_messages --listen ADDR PORT NUM SIZE first|second  serves one connection; prints "ready rdma=ADDR:PORT"
//
// first: sends its messages, then awaits the peer's; second: the other way round. Waits 20 s at most for anything. Exit
// status 0 where all that was expected came and all that was sent completed.
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/address.h"
#include "base/address.h"
#include "verbs-shim/api/explain.h"
#include "verbs-shim/soft/device.h"

namespace weft::verbs {
namespace {

constexpr std::chrono::seconds kPatience{20};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "verbs_messages: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T must(Result<T> result, const char* what) {
  if (!result.ok()) fail(std::string(what) + ": " + result.error().message);
  return std::move(result.value());
}
void must(const Status& status, const char* what) {
  if (!status.ok()) fail(std::string(what) + ": " + status.error().message);
}

// With the nudge that a stock siw may need.
SoftConfig patient_with_siw() {
  SoftConfig config;
  config.nudge = std::nullopt;
  return config;
}

struct Options {
  sockaddr_storage addr{};
  bool listen = false;
  std::uint32_t num = 0;   // messages each way
  std::uint32_t size = 0;  // octets of each
  bool first = false;
};

class Talk {
 public:
  explicit Talk(const Options& options)
      : options_(options),
        device_(must(open_soft_device(patient_with_siw()), "open the device")),
        pd_(must(device_->alloc_pd(), "alloc_pd")),
        cq_(must(device_->create_cq(int(2 * options.num), nullptr), "create_cq")),
        cm_(must(device_->create_event_channel(), "create_event_channel")),
        id_(must(cm_->create_id(), "create_id")),
        memory_(std::size_t{2} * options.num * options.size),
        mr_(must(pd_->reg_mr(memory_.data(), memory_.size(), Access::kLocalWrite), "reg_mr")) {
    for (std::size_t i = 0; i < memory_.size() / 2; ++i) memory_[i] = std::uint8_t('a' + i % 26);
  }

  void run() {
    if (options_.listen) {
      accept();
    } else {
      connect();
    }
    if (options_.first) send_all();
    await(received_, "the peer's messages");
    if (!options_.first) send_all();
    // Either end may be the first to disconnect. The second one hears that there is no connection any more.
    if (events_.empty()) must(id_->disconnect(), "disconnect");
    await_event(CmEventType::kDisconnected);
    std::printf("sent %u and received %u messages of %u octets\n", sent_, received_, options_.size);
  }

 private:
  void connect() {
    must(id_->resolve_addr(options_.addr, kPatience), "resolve_addr");
    await_event(CmEventType::kAddrResolved);
    must(id_->resolve_route(kPatience), "resolve_route");
    await_event(CmEventType::kRouteResolved);
    prepare();
    must(id_->connect({{}, 1, 1}), "connect");
    await_event(CmEventType::kEstablished);
  }

  void accept() {
    must(id_->bind_addr(options_.addr), "bind_addr");
    must(id_->listen(1), "listen");
    std::printf("ready rdma=%s\n", address_str(id_->local_addr()).c_str());
    std::fflush(stdout);
    CmEvent request = await_event(CmEventType::kConnectRequest);
    listener_ = std::exchange(id_, std::move(request.new_id));
    prepare();
    must(id_->accept({{}, 1, 1}), "accept");
    await_event(CmEventType::kEstablished);
  }

  // The queue pair with a Receive for each of the peer's messages.
  void prepare() {
    QpInitAttr attr;
    attr.send_cq = attr.recv_cq = cq_.get();
    attr.cap.max_send_wr = attr.cap.max_recv_wr = options_.num;
    qp_ = must(id_->create_qp(*pd_, attr), "create_qp");
    for (std::uint32_t i = 0; i < options_.num; ++i) {
      const Sge sge = piece(options_.num + i);
      must(qp_->post_recv({.wr_id = i, .sg_list = {&sge, 1}}), "post_recv");
    }
  }

  void send_all() {
    for (std::uint32_t i = 0; i < options_.num; ++i) {
      const Sge sge = piece(i);
      SendWr wr;
      wr.wr_id = i;
      wr.sg_list = {&sge, 1};
      must(qp_->post_send(wr), "post_send");
    }
    await(sent_, "the completion of what was sent");
  }

  Sge piece(std::uint32_t index) const {
    return {reinterpret_cast<std::uintptr_t>(memory_.data()) + std::size_t{index} * options_.size, options_.size,
            mr_->lkey()};
  }

  void await(const std::uint32_t& count, const char* what) {
    const TimePoint until = std::chrono::steady_clock::now() + kPatience;
    while (count < options_.num) {
      turn(until, what);
      Wc wc[16];
      const int num = cq_->poll(wc);
      for (int i = 0; i < num; ++i) on_completion(wc[i]);
      if (num == 0 && !events_.empty()) fail(std::string("waiting for ") + what + ": " + events_.front().text);
    }
  }

  void on_completion(const Wc& wc) {
    if (wc.status != WcStatus::kSuccess) {
      fail("a request failed: " + explain(wc, await_event(CmEventType::kDisconnected).text));
    }
    if (wc.opcode != WcOpcode::kRecv) {
      ++sent_;
      return;
    }
    if (wc.byte_len != options_.size) fail("a message of " + std::to_string(wc.byte_len) + " octets arrived");
    ++received_;
  }

  CmEvent await_event(CmEventType wanted) {
    const TimePoint until = std::chrono::steady_clock::now() + kPatience;
    while (events_.empty()) turn(until, cm_event_str(wanted));
    CmEvent event = std::move(events_.front());
    events_.pop_front();
    if (event.type != wanted) fail(std::string(cm_event_str(event.type)) + ": " + event.text);
    return event;
  }

  void turn(TimePoint until, const char* what) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (now > until) fail(std::string("waited in vain for ") + what);
    if (device_->process(now) == 0) {
      pollfd wait{device_->fd(), POLLIN, 0};
      ::poll(&wait, 1, 20);
    }
    while (std::optional<CmEvent> event = cm_->get_event()) events_.push_back(std::move(*event));
  }

  const Options options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Pd> pd_;
  std::unique_ptr<Cq> cq_;
  std::unique_ptr<CmChannel> cm_;
  std::unique_ptr<CmId> listener_;
  std::unique_ptr<CmId> id_;
  std::vector<std::uint8_t> memory_;
  std::unique_ptr<Mr> mr_;
  std::unique_ptr<Qp> qp_;
  std::uint32_t sent_ = 0, received_ = 0;
  std::deque<CmEvent> events_;
};

Options parse(std::vector<std::string> words) {
  Options options;
  if (!words.empty() && words.front() == "--listen") {
    options.listen = true;
    words.erase(words.begin());
  }
  if (words.size() != 5) fail("usage: verbs_messages [--listen] ADDR PORT NUM SIZE first|second");
  const auto addr = apps::resolve_address(words[0] + ":" + words[1]);
  if (!addr.ok()) fail(std::string(addr.status().message()));
  options.addr = *addr;
  options.num = std::uint32_t(std::stoul(words[2]));
  options.size = std::uint32_t(std::stoul(words[3]));
  options.first = words[4] == "first";
  return options;
}

}  // namespace
}  // namespace weft::verbs

int main(int argc, char** argv) {
  weft::verbs::Talk(weft::verbs::parse({argv + 1, argv + argc})).run();
  return 0;
}
