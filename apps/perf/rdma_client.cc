#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/connection.h"
#include "apps/perf/client.h"
#include "apps/perf/silence.h"
#include "base/address.h"

namespace weft::apps::perf {
namespace {

// If the listener rejected the connection, its reason says more than any guess at it.
absl::Status why_not_connected(const absl::Status& status, const Connection& connection) {
  const std::optional<Ready> ready = parse_ready(filled_ready(connection.peer_param().private_data));
  if (!ready || ready->error.empty()) return status;
  return absl::FailedPreconditionError("the listener refuses: " + ready->error);
}

using Clock = std::chrono::steady_clock;

// Answers of the listener that may be under way: one for each quarter of a window, and the final one.
constexpr std::uint32_t kNumAnswers = 8;
constexpr std::uint32_t kClientCompletions = 64;

// RdmaRun is one op over one connection.
class RdmaRun {
 public:
  explicit RdmaRun(const RunContext& context)
      : context_(context),
        lat_(context.options.lat),
        size_(effective_size(context.options)),
        depth_(effective_depth(context.options)),
        // Each completion costs something; a quarter of the depth keeps the queue fed all the same.
        signal_every_(std::max<std::uint32_t>(1, depth_ / 4)),
        silence_(patience(context.options)) {}

  absl::StatusOr<Measured> run();

 private:
  absl::Status open();
  absl::Status register_memory();
  absl::Status post_recv(std::size_t place);
  absl::Status post_op();
  absl::Status post_end();
  absl::Status turn();
  absl::Status on_completion(const verbs::Wc& wc);
  absl::Status on_answer(const verbs::Wc& wc);
  absl::Status fill();
  absl::Status measure_throughput();
  absl::Status measure_latency();
  absl::Status lost(const verbs::Wc& wc);
  std::uint64_t ops_done() const;
  Measured result() const;

  bool send_echo() const { return lat_ && context_.options.op == Op::kSend; }
  std::size_t recv_len() const { return send_echo() ? std::max<std::size_t>(size_, kTotalsLen) : kTotalsLen; }

  const RunContext& context_;
  const bool lat_;
  const std::uint64_t size_;
  const std::uint32_t depth_;
  const std::uint32_t signal_every_;
  Ready ready_;
  std::vector<std::uint8_t> data_, recvs_;
  std::unique_ptr<verbs::Mr> data_mr_, recvs_mr_;
  std::unique_ptr<Connection> connection_;
  std::uint64_t posted_ = 0, completed_ = 0;  // operations, without the end
  std::uint64_t received_ = 0;                // messages from the listener
  Totals totals_;
  Clock::time_point start_;
  double seconds_ = 0;
  bool interrupted_ = false;
  Silence silence_;
  Samples samples_;
};

absl::Status RdmaRun::register_memory() {
  using verbs::Access;
  data_.resize(std::max<std::uint64_t>(size_, 1), 0x5a);
  Access access = Access::kNone;
  if (context_.options.op == Op::kRead) {
    access = Access::kLocalWrite;
    if (context_.device.caps().read_sink_needs_remote_write) access = access | Access::kRemoteWrite;
  }
  auto mr = reg_mr(context_.pd, data_.data(), data_.size(), access);
  if (!mr.ok()) return mr.status();
  data_mr_ = std::move(*mr);
  recvs_.resize(kNumAnswers * recv_len());
  mr = reg_mr(context_.pd, recvs_.data(), recvs_.size(), Access::kLocalWrite);
  if (!mr.ok()) return mr.status();
  recvs_mr_ = std::move(*mr);
  return absl::OkStatus();
}

absl::Status RdmaRun::open() {
  if (auto status = register_memory(); !status.ok()) return status;
  verbs::QpCap cap;
  cap.max_send_wr = std::max(depth_, 64u) + 1;
  cap.max_recv_wr = kNumAnswers;
  auto connection = Connection::open(context_.device, context_.pd, context_.addr, cap, context_.progress);
  if (!connection.ok()) return connection.status();
  connection_ = std::move(*connection);
  for (std::size_t place = 0; place < kNumAnswers; ++place) {
    if (auto status = post_recv(place); !status.ok()) return status;
  }
  Hello hello{context_.options.op, lat_, false, size_, depth_};
  auto octets = emit_hello(hello);
  verbs::ConnParam param;
  param.private_data.assign(octets.begin(), octets.end());
  param.initiator_depth = std::uint8_t(std::min<std::uint32_t>(context_.device.caps().max_qp_init_rd_atom, 255));
  if (auto status = connection_->connect(param, context_.progress); !status.ok()) {
    return why_not_connected(status, *connection_);
  }
  std::optional<Ready> ready = parse_ready(filled_ready(connection_->peer_param().private_data));
  if (!ready)
    return absl::UnavailableError(address_str(context_.addr) +
                                  " is not a weft perf listener, or it has another version");
  if (!ready->error.empty()) return absl::FailedPreconditionError("the listener refuses: " + ready->error);
  if (context_.options.op != Op::kSend && is_rdma(context_.options.op) && ready->length < size_) {
    return absl::UnavailableError("the listener gave less memory than was asked for");
  }
  ready_ = std::move(*ready);
  return absl::OkStatus();
}

absl::Status RdmaRun::post_recv(std::size_t place) {
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(recvs_.data() + place * recv_len()), std::uint32_t(recv_len()),
                 recvs_mr_->lkey()};
  auto status = connection_->qp().post_recv({.wr_id = place, .sg_list = {&sge, 1}});
  return status.ok() ? absl::OkStatus() : to_status(status.error(), "cannot post a receive");
}

// wr_id counts operations from 1: a completion speaks for everything posted before it.
absl::Status RdmaRun::post_op() {
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(data_.data()), std::uint32_t(size_), data_mr_->lkey()};
  verbs::SendWr wr;
  wr.wr_id = ++posted_;
  wr.sg_list = {&sge, 1};
  wr.opcode = context_.options.op == Op::kSend    ? verbs::WrOpcode::kSend
              : context_.options.op == Op::kWrite ? verbs::WrOpcode::kRdmaWrite
                                                  : verbs::WrOpcode::kRdmaRead;
  wr.remote_addr = ready_.addr;
  wr.rkey = ready_.rkey;
  bool signaled = send_echo() ? posted_ % 32 == 0 : posted_ % signal_every_ == 0;
  if (!signaled) wr.send_flags = verbs::SendFlags::kNone;
  auto status = connection_->qp().post_send(wr);
  return status.ok() ? absl::OkStatus() : to_status(status.error(), "cannot post");
}

// The end is an empty Send; the fence puts it behind all Reads. The listener's answer says that everything before it
// has arrived and is placed.
absl::Status RdmaRun::post_end() {
  verbs::SendWr wr;
  wr.wr_id = posted_;
  wr.send_flags = verbs::SendFlags::kSignaled | verbs::SendFlags::kFence;
  auto status = connection_->qp().post_send(wr);
  return status.ok() ? absl::OkStatus() : to_status(status.error(), "cannot post");
}

absl::Status RdmaRun::lost(const verbs::Wc& wc) {
  return absl::UnavailableError("the connection ended: " + connection_->why(wc, context_.progress));
}

absl::Status RdmaRun::on_completion(const verbs::Wc& wc) {
  if (wc.status != verbs::WcStatus::kSuccess) return lost(wc);
  if (wc.opcode == verbs::WcOpcode::kRecv) return on_answer(wc);
  completed_ = std::max(completed_, wc.wr_id);
  return absl::OkStatus();
}

absl::Status RdmaRun::on_answer(const verbs::Wc& wc) {
  ++received_;
  if (!send_echo() || wc.byte_len == kTotalsLen) {
    auto totals = parse_totals(ConstBytes(recvs_).subspan(wc.wr_id * recv_len(), wc.byte_len));
    if (totals) {
      totals_ = *totals;
    } else if (!send_echo()) {
      return absl::UnavailableError("the listener sent something else than an answer");
    }
  }
  return post_recv(wc.wr_id);
}

absl::Status RdmaRun::turn() {
  const bool is_quiet = context_.progress.silent_for(silence_.every());
  const TimePoint since = is_quiet ? Clock::now() : context_.progress.silent_since();
  if (context_.progress.turn(context_.device, since + silence_.every()) == 0) {
    if (context_.progress.stop_requested()) return absl::CancelledError("interrupted");
    if (connection_->ended()) return absl::UnavailableError("the connection ended: " + *connection_->ended());
    if (context_.progress.silent_for(silence_.every()) &&
        silence_.is_over(Clock::now(), connection_->qp().counters())) {
      return not_responding("the listener at " + address_str(context_.addr), context_.options);
    }
  }
  verbs::Wc wc[kClientCompletions];
  int num = 0;
  do {
    num = connection_->cq().poll(wc);
    if (num < 0) return absl::InternalError("the completion queue overflowed");
    for (int i = 0; i < num; ++i) {
      if (auto status = on_completion(wc[i]); !status.ok()) return status;
    }
  } while (num == int(std::size(wc)));  // completions left here would not wake us
  return absl::OkStatus();
}

absl::Status RdmaRun::fill() {
  while (posted_ - completed_ < depth_) {
    if (context_.options.op == Op::kSend && posted_ - totals_.messages >= ready_.window) break;
    if (auto status = post_op(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RdmaRun::measure_throughput() {
  auto end =
      start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(context_.options.seconds));
  // However short the time is, one operation is done.
  while (posted_ == 0 || Clock::now() < end) {
    if (context_.progress.stop_requested()) return absl::CancelledError("interrupted");
    if (auto status = fill(); !status.ok()) return status;
    if (auto status = turn(); !status.ok()) return status;
  }
  if (auto status = post_end(); !status.ok()) return status;
  while (!totals_.final || completed_ < posted_) {
    if (auto status = turn(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RdmaRun::measure_latency() {
  auto end =
      start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(context_.options.seconds));
  Clock::time_point now = start_;
  while (samples_.num() == 0 || now < end) {
    if (context_.progress.stop_requested()) return absl::CancelledError("interrupted");
    if (auto status = post_op(); !status.ok()) return status;
    std::uint64_t want = posted_;
    while (send_echo() ? received_ < want : completed_ < want) {
      if (auto status = turn(); !status.ok()) return status;
    }
    Clock::time_point then = now;
    now = Clock::now();
    samples_.add(std::uint64_t(std::chrono::nanoseconds(now - then).count()));
  }
  return absl::OkStatus();
}

// For an interrupted run, the number of operations that are known to be done.
std::uint64_t RdmaRun::ops_done() const {
  if (!interrupted_) return posted_;
  if (lat_) return samples_.num();
  return context_.options.op == Op::kSend ? totals_.messages : completed_;
}

Measured RdmaRun::result() const {
  Measured measured;
  measured.op = context_.options.op;
  measured.size = size_;
  measured.depth = depth_;
  measured.seconds = seconds_;
  measured.ops = ops_done();
  measured.octets = measured.ops * size_;
  measured.interrupted = interrupted_;
  measured.waiting = how_it_waited(context_.global, context_.progress.mode(), context_.progress.waits());
  measured.congestion_control = rdma_congestion_control(context_.global);
  measured.peer_congestion_control = ready_.congestion_control;
  if (context_.global.is_soft()) measured.crc = context_.global.crc || ready_.crc;
  return measured;
}

absl::StatusOr<Measured> RdmaRun::run() {
  if (auto status = open(); !status.ok()) return status;
  announce(context_.options);
  context_.progress.begin_silence();
  start_ = Clock::now();
  silence_.begin(start_, connection_->qp().counters());
  const absl::Status status = lat_ ? measure_latency() : measure_throughput();
  seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
  interrupted_ = absl::IsCancelled(status);
  if (!status.ok() && !interrupted_) return status;
  if (!interrupted_ && context_.options.op == Op::kSend && !lat_ && totals_.messages != posted_) {
    return absl::DataLossError("the listener counted " + std::to_string(totals_.messages) + " messages of " +
                               std::to_string(posted_));
  }
  constexpr std::chrono::milliseconds kGoodbye{5000}, kShortGoodbye{500};
  connection_->disconnect(interrupted_ ? kShortGoodbye : kGoodbye);
  Measured measured = result();
  if (lat_) take_quantiles(measured, samples_);
  return measured;
}

}  // namespace

void announce(const PerfOptions& options) {
  spdlog::info("perf: measuring {} for {} s", op_name(options.op), options.seconds);
}

absl::Status not_responding(const std::string& who, const PerfOptions& options) {
  const double seconds = std::chrono::duration<double>(patience(options)).count();
  return absl::DeadlineExceededError(
      fmt::format("{} does not respond: nothing came from it for {:g} s (--timeout)", who, seconds));
}

absl::StatusOr<Measured> run_rdma(const RunContext& context) {
  return RdmaRun(context).run();
}

absl::StatusOr<Ready> introduce(const RunContext& context) {
  verbs::QpCap cap;
  cap.max_send_wr = cap.max_recv_wr = 1;
  auto connection = Connection::open(context.device, context.pd, context.addr, cap, context.progress);
  if (!connection.ok()) return connection.status();
  Hello hello{context.options.op, context.options.lat, false, effective_size(context.options),
              effective_depth(context.options)};
  auto octets = emit_hello(hello);
  verbs::ConnParam param;
  param.private_data.assign(octets.begin(), octets.end());
  if (auto status = (*connection)->connect(param, context.progress); !status.ok()) {
    return why_not_connected(status, **connection);
  }
  std::optional<Ready> ready = parse_ready(filled_ready((*connection)->peer_param().private_data));
  (*connection)->disconnect();
  context.progress.drive(context.device);
  if (!ready)
    return absl::UnavailableError(address_str(context.addr) +
                                  " is not a weft perf listener, or it has another version");
  if (!ready->error.empty()) return absl::FailedPreconditionError("the listener refuses: " + ready->error);
  return *ready;
}

}  // namespace weft::apps::perf
