#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/time.h"
#include "bench/idle.h"
#include "verbs-shim/soft/device.h"

// Shared by the programs that drive both ends of connections over loopback in one thread.
namespace weft::bench {

// End is one device with everything that its connections share.
struct End {
  static constexpr std::size_t kRegionLen = 256 * 1024;

  End() {
    verbs::SoftConfig config;
    config.cq_overcommit = true;
    device = must(verbs::open_soft_device(config));
    pd = must(device->alloc_pd());
    cq = must(device->create_cq(4096, nullptr));
    channel = must(device->create_event_channel());
    memory.resize(kRegionLen);
    mr = must(pd->reg_mr(memory.data(), memory.size(), verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite));
  }
  verbs::Sge sge(std::uint32_t len) const { return {reinterpret_cast<std::uintptr_t>(memory.data()), len, mr->lkey()}; }
  std::unique_ptr<verbs::Qp> qp(verbs::CmId& id) {
    verbs::QpInitAttr attr;
    attr.send_cq = attr.recv_cq = cq.get();
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 16;
    return must(id.create_qp(*pd, attr));
  }
  // Returns the number of completions. The program ends at a failed one.
  int polled() {
    verbs::Wc wc[16];
    const int n = cq->poll(wc);
    for (int i = 0; i < n; ++i) {
      if (wc[i].status == verbs::WcStatus::kSuccess) continue;
      std::fprintf(stderr, "%s: a request failed: %s\n", program_invocation_short_name,
                   verbs::wc_status_str(wc[i].status));
      std::exit(1);
    }
    return std::max(n, 0);
  }

  std::unique_ptr<verbs::Device> device;
  std::unique_ptr<verbs::Pd> pd;
  std::unique_ptr<verbs::Cq> cq;
  std::unique_ptr<verbs::CmChannel> channel;
  std::vector<std::uint8_t> memory;
  std::unique_ptr<verbs::Mr> mr;
  std::vector<std::unique_ptr<verbs::CmId>> ids;
  std::vector<std::unique_ptr<verbs::Qp>> qps;
};

// Ends are a listener, a client, and the connections between them.
struct Ends {
  Ends() {
    listener = must(server.channel->create_id());
    must(listener->bind_addr(any_loopback_port()));
    must(listener->listen(64));
  }

  void turn() {
    const auto now = clock();
    server.device->process(now);
    client.device->process(now);
  }

  // Adds one connection. Earlier connections stay.
  void connect() {
    auto id = must(client.channel->create_id());
    must(id->bind_addr(any_port_for(client.ids.size())));
    must(id->resolve_addr(listener->local_addr(), std::chrono::seconds(5)));
    must(id->resolve_route(std::chrono::seconds(5)));
    client.qps.push_back(client.qp(*id));
    must(id->connect({}));
    client.ids.push_back(std::move(id));
    int established = 0;
    while (established < 2) {
      turn();
      while (auto event = server.channel->get_event()) {
        if (event->type == verbs::CmEventType::kEstablished) ++established;
        if (event->type != verbs::CmEventType::kConnectRequest) continue;
        server.qps.push_back(server.qp(*event->new_id));
        must(event->new_id->accept({}));
        server.ids.push_back(std::move(event->new_id));
      }
      while (auto event = client.channel->get_event())
        if (event->type == verbs::CmEventType::kEstablished) ++established;
    }
  }

  // An RDMA Write of the client's memory to the server's, over the newest connection.
  void write(std::uint32_t len) {
    verbs::SendWr wr;
    const verbs::Sge sge = client.sge(len);
    wr.sg_list = {&sge, 1};
    wr.opcode = verbs::WrOpcode::kRdmaWrite;
    wr.remote_addr = reinterpret_cast<std::uintptr_t>(server.memory.data());
    wr.rkey = server.mr->rkey();
    must(client.qps.back()->post_send(wr));
  }

  TimePoint (*clock)() = std::chrono::steady_clock::now;
  End server;
  End client;
  std::unique_ptr<verbs::CmId> listener;
};

}  // namespace weft::bench
