// What an idle connection costs: a process that holds N ends of connections over loopback, both ends of each, has each
// move some data, lets them rest, and prints how much it grew per end and what a round trip on one more connection
// takes beside them.
//
//   idle [ENDS (default 10000)]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/idle.h"
#include "verbs-shim/soft/device.h"

namespace {

using namespace weft;
using namespace weft::verbs;
using bench::must;

constexpr std::size_t kRegionLen = 256 * 1024;

// End is one device with everything that its connections share.
struct End {
  End() {
    SoftConfig config;
    config.cq_overcommit = true;
    device = must(open_soft_device(config));
    pd = must(device->alloc_pd());
    cq = must(device->create_cq(4096, nullptr));
    channel = must(device->create_event_channel());
    memory.resize(kRegionLen);
    mr = must(pd->reg_mr(memory.data(), memory.size(), Access::kLocalWrite | Access::kRemoteWrite));
  }
  Sge sge(std::uint32_t len) const { return {reinterpret_cast<std::uintptr_t>(memory.data()), len, mr->lkey()}; }
  std::unique_ptr<Qp> qp(CmId& id) {
    QpInitAttr attr;
    attr.send_cq = attr.recv_cq = cq.get();
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 16;
    return must(id.create_qp(*pd, attr));
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Pd> pd;
  std::unique_ptr<Cq> cq;
  std::unique_ptr<CmChannel> channel;
  std::vector<std::uint8_t> memory;
  std::unique_ptr<Mr> mr;
  std::vector<std::unique_ptr<CmId>> ids;
  std::vector<std::unique_ptr<Qp>> qps;
};

class Idle {
 public:
  Idle() {
    listener_ = must(server_.channel->create_id());
    must(listener_->bind_addr(bench::any_loopback_port()));
    must(listener_->listen(64));
  }

  // One more pair; what was connected stays.
  void connect() {
    auto id = must(client_.channel->create_id());
    must(id->resolve_addr(listener_->local_addr(), std::chrono::seconds(5)));
    must(id->resolve_route(std::chrono::seconds(5)));
    client_.qps.push_back(client_.qp(*id));
    must(id->connect({}));
    client_.ids.push_back(std::move(id));
    int established = 0;
    while (established < 2) {
      turn();
      while (auto event = server_.channel->get_event()) {
        if (event->type == CmEventType::kEstablished) ++established;
        if (event->type != CmEventType::kConnectRequest) continue;
        server_.qps.push_back(server_.qp(*event->new_id));
        must(event->new_id->accept({}));
        server_.ids.push_back(std::move(event->new_id));
      }
      while (auto event = client_.channel->get_event())
        if (event->type == CmEventType::kEstablished) ++established;
    }
  }

  // A large Write, many small ones, and a Send each way on the newest connection.
  void work() {
    Qp& qp = *client_.qps.back();
    for (int i = 0; i < 8; ++i) write(qp, i == 0 ? kRegionLen : 2000);
    for (int done = 0; done < 8;) {
      turn();
      done += polled(client_);
    }
    round_trip();
  }

  // A Send of 64 octets there and back on the newest connection.
  void round_trip() {
    must(server_.qps.back()->post_recv({.wr_id = 0, .sg_list = std::array{server_.sge(64)}}));
    must(client_.qps.back()->post_recv({.wr_id = 0, .sg_list = std::array{client_.sge(64)}}));
    must(client_.qps.back()->post_send({.wr_id = 0, .sg_list = std::array{client_.sge(64)}}));
    for (int got = 0; got < 1; got += polled(server_)) turn();
    must(server_.qps.back()->post_send({.wr_id = 0, .sg_list = std::array{server_.sge(64)}}));
    for (int left = 3; left > 0; left -= polled(client_) + polled(server_)) turn();
  }

  // Long enough for the devices to take back what their connections took to be busy.
  void rest() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < end) turn();
  }

  double median_round_trip_us() {
    std::vector<double> us;
    for (int i = 0; i < 2000; ++i) {
      const auto start = std::chrono::steady_clock::now();
      round_trip();
      us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(us.begin(), us.begin() + 1000, us.end());
    return us[1000];
  }

 private:
  void turn() {
    const auto now = std::chrono::steady_clock::now();
    server_.device->process(now);
    client_.device->process(now);
  }
  static int polled(End& end) {
    Wc wc[16];
    const int n = end.cq->poll(wc);
    for (int i = 0; i < n; ++i) {
      if (wc[i].status == WcStatus::kSuccess) continue;
      std::fprintf(stderr, "idle: a request failed: %s\n", wc_status_str(wc[i].status));
      std::exit(1);
    }
    return std::max(n, 0);
  }
  void write(Qp& qp, std::uint32_t len) {
    SendWr wr;
    const Sge sge = client_.sge(len);
    wr.sg_list = {&sge, 1};
    wr.opcode = WrOpcode::kRdmaWrite;
    wr.remote_addr = reinterpret_cast<std::uintptr_t>(server_.memory.data());
    wr.rkey = server_.mr->rkey();
    must(qp.post_send(wr));
  }

  End server_;
  End client_;
  std::unique_ptr<CmId> listener_;
};

}  // namespace

int main(int argc, char** argv) {
  const long num = argc > 1 ? std::atol(argv[1]) / 2 : 5000;
  if (num <= 0) {
    std::fprintf(stderr, "usage: idle [ENDS]\n");
    return 2;
  }
  if (bench::raise_file_limit() < static_cast<rlim_t>(2 * num + 64)) {
    std::fprintf(stderr, "idle: %ld ends need a higher limit of open files (ulimit -Hn)\n", 2 * num);
    return 1;
  }

  auto idle = std::make_unique<Idle>();
  idle->connect();
  idle->work();
  const double alone = idle->median_round_trip_us();
  const std::size_t before = bench::resident();
  for (long i = 0; i < num; ++i) {
    idle->connect();
    idle->work();
  }
  idle->rest();
  const std::size_t grown = bench::resident() - before;
  std::printf("ends %ld, octets per end %zu, round trip alone %.2f us, beside them %.2f us\n", 2 * num,
              grown / (2 * static_cast<std::size_t>(num)), alone, idle->median_round_trip_us());
  std::fflush(stdout);
  std::_Exit(0);  // the kernel closes 20,000 sockets faster than they say goodbye one by one
}
