#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/connection.h"
#include "apps/common/output.h"
#include "apps/common/samples.h"
#include "apps/common/setup.h"
#include "apps/ping/run.h"
#include "base/address.h"

namespace weft::apps::ping {
namespace {

using Clock = std::chrono::steady_clock;

// Client is one run of the client's side: its memory, its connection, its samples.
class Client {
 public:
  Client(const GlobalOptions& global, const PingOptions& options)
      : global_(global), options_(options), progress_(global.progress_or(ProgressMode::kAdapt), &stop_) {}

  absl::Status open();
  absl::Status run();
  void close() { connection_->disconnect(); }
  void report();

 private:
  absl::Status register_buffers();
  absl::Status turn(std::uint64_t number);
  // Sends one BufferInfo and waits for the server's go ahead.
  absl::Status exchange(verbs::Mr& mr);
  absl::Status await_go_ahead();
  absl::Status post_recv();

  const GlobalOptions& global_;
  const PingOptions& options_;
  StopSignals stop_;
  Progress progress_;
  sockaddr_storage addr_{};
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::Pd> pd_;
  std::vector<std::uint8_t> source_, sink_;
  InfoOctets info_{}, go_ahead_{};
  std::unique_ptr<verbs::Mr> source_mr_, sink_mr_, info_mr_, go_ahead_mr_;
  std::unique_ptr<Connection> connection_;
  Samples samples_;
  std::uint64_t done_ = 0;
};

absl::Status Client::open() {
  auto addr = resolve_address(options_.target, kDefaultPort);
  if (!addr.ok()) return addr.status();
  addr_ = *addr;
  auto device = open_device(global_, {.congestion_control = {}, .answer_timeout = patience(options_)});
  if (!device.ok()) return device.status();
  device_ = std::move(*device);
  progress_.expect(place_of(addr_));
  progress_.drive(*device_);
  auto pd = alloc_pd(*device_);
  if (!pd.ok()) return pd.status();
  pd_ = std::move(*pd);
  if (auto status = register_buffers(); !status.ok()) return status;

  verbs::QpCap cap;
  cap.max_send_wr = cap.max_recv_wr = 4;
  auto connection = Connection::open(*device_, *pd_, *addr, cap, progress_);
  if (!connection.ok()) return connection.status();
  connection_ = std::move(*connection);
  if (auto status = post_recv(); !status.ok()) return status;
  verbs::ConnParam param;
  param.responder_resources = param.initiator_depth = 1;
  return connection_->connect(param, progress_);
}

absl::Status Client::register_buffers() {
  using verbs::Access;
  source_.resize(options_.size);
  sink_.resize(options_.size);
  struct Region {
    std::unique_ptr<verbs::Mr>& mr;
    std::span<std::uint8_t> octets;
    Access access;
  };
  const Region regions[] = {{source_mr_, source_, Access::kRemoteRead},
                            {sink_mr_, sink_, Access::kLocalWrite | Access::kRemoteWrite},
                            {info_mr_, info_, Access::kNone},
                            {go_ahead_mr_, go_ahead_, Access::kLocalWrite}};
  for (const Region& region : regions) {
    auto mr = reg_mr(*pd_, region.octets.data(), region.octets.size(), region.access);
    if (!mr.ok()) return mr.status();
    region.mr = std::move(*mr);
  }
  return absl::OkStatus();
}

absl::Status Client::post_recv() {
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(go_ahead_.data()), kInfoLen, go_ahead_mr_->lkey()};
  auto status = connection_->qp().post_recv({.wr_id = 0, .sg_list = {&sge, 1}});
  return status.ok() ? absl::OkStatus() : to_status(status.error(), "cannot post a receive");
}

absl::Status Client::exchange(verbs::Mr& mr) {
  info_ = emit_info({reinterpret_cast<std::uintptr_t>(mr.addr()), mr.rkey(), std::uint32_t(mr.length())});
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(info_.data()), kInfoLen, info_mr_->lkey()};
  verbs::SendWr wr;
  wr.sg_list = {&sge, 1};
  if (auto status = connection_->qp().post_send(wr); !status.ok()) return to_status(status.error(), "cannot send");
  return await_go_ahead();
}

absl::Status Client::await_go_ahead() {
  // The Send must complete too, because the next one uses its memory again.
  bool sent = false, received = false;
  progress_.begin_silence();
  while (!sent || !received) {
    if (stop_.requested()) return absl::CancelledError("interrupted");
    progress_.turn(*device_, progress_.silent_since() + patience(options_));
    verbs::Wc wc[4];
    int num = connection_->cq().poll(wc);
    if (num <= 0) {
      if (connection_->ended()) return absl::UnavailableError("the connection ended: " + *connection_->ended());
      if (progress_.silent_for(patience(options_))) {
        return absl::DeadlineExceededError(
            fmt::format("{} does not respond: nothing came from it for {:g} s (--timeout)", address_str(addr_),
                        std::chrono::duration<double>(patience(options_)).count()));
      }
      continue;
    }
    for (int i = 0; i < num; ++i) {
      if (wc[i].status != verbs::WcStatus::kSuccess) {
        return absl::UnavailableError("the connection ended: " + connection_->why(wc[i], progress_));
      }
      (wc[i].opcode == verbs::WcOpcode::kRecv ? received : sent) = true;
      if (wc[i].opcode == verbs::WcOpcode::kRecv && wc[i].byte_len != kInfoLen) {
        return absl::DataLossError(fmt::format("the server answered with {} bytes, not {}", wc[i].byte_len, kInfoLen));
      }
    }
  }
  return post_recv();
}

absl::Status Client::turn(std::uint64_t number) {
  fill_pattern(source_, number);
  if (options_.verify) std::fill(sink_.begin(), sink_.end(), std::uint8_t{0xa5});
  Clock::time_point start = Clock::now();
  if (auto status = exchange(*source_mr_); !status.ok()) return status;
  if (auto status = exchange(*sink_mr_); !status.ok()) return status;
  samples_.add(std::uint64_t(std::chrono::nanoseconds(Clock::now() - start).count()));
  if (options_.verify && sink_ != source_) {
    return absl::DataLossError(fmt::format("ping {} came back different", number));
  }
  return absl::OkStatus();
}

absl::Status Client::run() {
  spdlog::info("ping: connected to {}", address_str(addr_));
  while (options_.count == 0 || done_ < options_.count) {
    if (stop_.requested()) break;
    absl::Status status = turn(done_);
    if (absl::IsCancelled(status)) break;
    if (!status.ok()) return status;
    ++done_;
  }
  return absl::OkStatus();
}

void Client::report() {
  const std::uint64_t min = samples_.min(), p50 = samples_.quantile(0.5), p99 = samples_.quantile(0.99);
  const bool is_measured = samples_.num() != 0;
  const HowItWaited waiting = how_it_waited(global_, progress_.mode(), progress_.waits());
  if (options_.json) {
    nlohmann::ordered_json json{{"op", "ping"}, {"size", options_.size}, {"count", done_}};
    if (is_measured) json.update({{"min_ns", min}, {"p50_ns", p50}, {"p99_ns", p99}});
    json.update({{"verified", options_.verify},
                 {"progress", waiting.progress},
                 {"sleep_share", waiting.sleep_share},
                 {"interrupted", stop_.requested()}});
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  std::string text = fmt::format("{} of {}{}", counted(done_, "ping"), counted(options_.size, "byte"),
                                 options_.verify ? ", verified" : "");
  if (is_measured) {
    text += fmt::format(": min {}, median {}, p99 {}", format_duration_ns(double(min)), format_duration_ns(double(p50)),
                        format_duration_ns(double(p99)));
  }
  std::printf("%s; %s\n", text.c_str(), waiting.str().c_str());
}

}  // namespace

int run_client(const GlobalOptions& global, const PingOptions& options) {
  Client client(global, options);
  if (auto status = client.open(); !status.ok()) return fail(status);
  absl::Status status = client.run();
  if (status.ok()) client.close();
  client.report();
  return status.ok() ? kExitDone : fail(status);
}

}  // namespace weft::apps::ping
