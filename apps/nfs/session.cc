#include "apps/nfs/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/rpc_config.h"
#include "base/address.h"
#include "nfsulb/nfs3.h"

namespace weft::nfs {
namespace {

using namespace std::chrono_literals;
using nfs3::Nfsstat3;

constexpr auto kAnswerTimeout = 10s;
constexpr auto kDrainTimeout = 3s;
constexpr auto kGoodbyeTimeout = 500ms;
constexpr auto kPatience = 60s;
constexpr auto kCallTimeout = 60s;
// A server with slow disks still answers NULL. A server that does not answer for so long is gone.
constexpr auto kSilence = 15s;
constexpr std::chrono::milliseconds kLongestPause{2000};
// When a Reply is expected any moment, a wake-up from sleep would cost more than the wait.
constexpr std::chrono::microseconds kSpin{50};

}  // namespace

absl::Status check(Nfsstat3 status, const std::string& what) {
  if (status == Nfsstat3::kOk) return absl::OkStatus();
  const std::string text = what + ": " + nfs3::nfsstat3_text(status);
  switch (status) {
    case Nfsstat3::kNoent: return absl::NotFoundError(text);
    case Nfsstat3::kExist: return absl::AlreadyExistsError(text);
    case Nfsstat3::kPerm:
    case Nfsstat3::kAcces: return absl::PermissionDeniedError(text);
    case Nfsstat3::kNotdir:
    case Nfsstat3::kIsdir:
    case Nfsstat3::kNotempty: return absl::FailedPreconditionError(text);
    default: return absl::UnknownError(text);
  }
}

Session::Session(Url url, MountedExport mounted, const apps::StopSignals& stop, apps::ProgressMode mode,
                 Endurance endurance)
    : url_(std::move(url)),
      export_(std::move(mounted)),
      stop_(stop),
      progress_mode_(mode),
      progress_(mode, &stop, kSpin),
      endurance_(std::move(endurance)) {}

Session::~Session() {
  if (!client_ || client_->state() != rpcrdma::Client::State::kReady) return;
  // An orderly end, so that the server need not wonder. The wait for it is short.
  const auto deadline = std::chrono::steady_clock::now() + kGoodbyeTimeout;
  client_->disconnect();
  apps::Progress progress(apps::ProgressMode::kBlock, nullptr, kSpin);
  while (client_->state() != rpcrdma::Client::State::kClosed && std::chrono::steady_clock::now() < deadline) {
    progress.turn(*client_, deadline);
  }
}

Session::Cleanup::Cleanup(Session& session) : session_(session) {
  session_.cleanup_until_ = std::chrono::steady_clock::now() + kDrainTimeout;
}

absl::StatusOr<std::unique_ptr<Session>> Session::open(const Url& url, const apps::GlobalOptions& options,
                                                       verbs::Device& device, const apps::StopSignals& stop,
                                                       Endurance endurance) {
  const std::chrono::milliseconds mount_timeout =
      endurance.timeout.count() == 0 ? std::chrono::milliseconds(kAnswerTimeout) : endurance.timeout;
  if (endurance.timeout.count() == 0) endurance.timeout = kCallTimeout + endurance.reconnect_for;
  auto mounted = mount_for(url, mount_timeout, stop.fd(), endurance.tell, endurance.tell_after);
  if (!mounted.ok()) return mounted.status();
  std::unique_ptr<Session> session(new Session(url, std::move(*mounted), stop,
                                               options.progress_or(apps::ProgressMode::kBlock), std::move(endurance)));
  if (absl::Status status = session->connect(options, device); !status.ok()) return status;
  return session;
}

absl::Status Session::connect(const apps::GlobalOptions& options, verbs::Device& device) {
  const absl::StatusOr<sockaddr_storage> addr = apps::resolve({url_.host, url_.port});
  if (!addr.ok()) return addr.status();
  rpcrdma::ClientConfig config = apps::client_config(options, apps::kCreditsForFiles);
  // Only a server that is there and slow gets a longer time.
  config.connect_timeout = std::min<std::chrono::milliseconds>(kAnswerTimeout, endurance_.timeout);
  config.reserve_credit = true;
  config.health_check = {.after = kSilence, .answer = kSilence, .when_idle = false};
  config.reconnect.max_time = std::min(endurance_.reconnect_for, endurance_.timeout);
  // Calls wait while the server is away.
  config.call_timeout = endurance_.timeout;
  const std::string what = "cannot connect to the NFS/RDMA server at " + address_str(*addr);
  auto client = rpcrdma::Client::connect(device, *addr, config);
  if (!client.ok()) return apps::to_status(client.error(), what);
  client_ = std::move(client.value());
  while (client_->state() == rpcrdma::Client::State::kConnecting) {
    if (absl::Status status = turn(); !status.ok()) {
      return absl::IsCancelled(status) ? status : explain(absl::UnavailableError(client_->error()), what);
    }
  }
  if (client_->state() == rpcrdma::Client::State::kClosed) {
    return absl::UnavailableError(what + ": " + client_->error());
  }
  return absl::OkStatus();
}

bool Patience::again() {
  const auto now = std::chrono::steady_clock::now();
  if (!give_up_) give_up_ = now + kPatience;
  next_ = now + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
  if (next_ >= *give_up_) return false;
  session_.tell_not_ready(now - (*give_up_ - kPatience), *give_up_ - now);
  return true;
}

void Session::tell_not_ready(Duration waited, Duration left) {
  if (!endurance_.tell || waited < endurance_.tell_after || std::exchange(told_not_ready_, true)) return;
  endurance_.tell(fmt::format(
      "server {} is not ready (NFS3ERR_JUKEBOX): it may be busy, or fetch the file from slow storage; asking again "
      "for {} s more",
      url_.host, std::chrono::ceil<std::chrono::seconds>(left).count()));
}

absl::Status Session::pause_until(TimePoint until) {
  while (std::chrono::steady_clock::now() < until) {
    if (absl::Status status = turn(-1, until); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Session::turn(int extra_fd, std::optional<TimePoint> until) {
  if (!client_) return absl::UnavailableError("the connection was given up");
  if (cleanup_until_) {
    if (std::chrono::steady_clock::now() >= *cleanup_until_) return absl::DeadlineExceededError("no answer in time");
    // The stop signals stay out of it: one that has come would end every sleep at once.
    apps::Progress(progress_mode_, nullptr, kSpin).turn(*client_, cleanup_until_, extra_fd);
  } else {
    if (stop_.requested()) return absl::CancelledError("interrupted");
    const std::optional<TimePoint> look = silence_.next();
    if (look && (!until || *look < *until)) until = look;
    // After an event the server is most often not silent.
    if (progress_.turn(*client_, until, extra_fd) == 0 || silence_.told()) tell_of_silence();
  }
  tell_of_connection();
  return client_->state() == rpcrdma::Client::State::kClosed ? connection_error() : absl::OkStatus();
}

void Session::tell_of_connection() {
  // The count tells, since a connection may come and go within one turn.
  const std::uint64_t num = client_->num_connections();
  const bool is_back = lost_ && num > num_connections_;
  const bool was_lost = std::exchange(lost_, client_->state() == rpcrdma::Client::State::kConnecting && num > 0);
  num_connections_ = num;
  if (!endurance_.tell) return;
  if (is_back) endurance_.tell("connected to " + url_.host + " again");
  if (lost_ && (!was_lost || is_back)) endurance_.tell(client_->error() + "; connecting again");
}

void Session::tell_of_silence() {
  const rpcrdma::Client::State state = client_->state();
  // The user knows already of a lost connection and of the attempts at another one.
  const bool is_first = state == rpcrdma::Client::State::kConnecting && client_->num_connections() == 0;
  const bool waiting = is_first || (state == rpcrdma::Client::State::kReady && client_->num_outstanding() > 0);
  const rpcrdma::ReplyCounts replies = client_->replies();
  if (replies.accepted != replies_before_.accepted) replies_before_ = replies;
  switch (silence_.look(waiting, replies.accepted, std::chrono::steady_clock::now())) {
    case SilenceWatch::News::kNone: return;
    case SilenceWatch::News::kSilent:
      if (endurance_.tell) {
        endurance_.tell(not_responding(url_.host, endurance_.timeout, replies_before_, replies));
      }
      return;
    case SilenceWatch::News::kBack:
      if (endurance_.tell) endurance_.tell(responding_again(url_.host));
      return;
  }
}

absl::Status Session::connection_error() const {
  return absl::UnavailableError("the connection to " + url_.host + " ended: " + client_->error());
}

absl::Status Session::start(const PreparedCall& prepared, rpcrdma::ReplyCallback done) {
  if (!client_) return absl::UnavailableError("the connection was given up");
  rpcrdma::CallSpec spec;
  spec.program = nfs3::kProgram;
  spec.version = nfs3::kVersion;
  spec.procedure = static_cast<std::uint32_t>(prepared.proc);
  spec.cred = &export_.cred;
  spec.args = prepared.args;
  spec.binding = &nfsulb::nfs3_binding();
  std::span<const std::size_t> reduced;
  if (prepared.item) {
    spec.items = *prepared.item;
    reduced = std::span(&prepared.item->position, 1);
  }
  spec.result_items = prepared.result_item;
  spec.max_results = spec.binding->max_results(spec.procedure, prepared.args, reduced);
  const auto status =
      client_->call(spec, [this, proc = prepared.proc, done = std::move(done)](const rpcrdma::Reply& reply) {
        if (reply.status == rpcrdma::CallStatus::kTimeout && !unanswered_) unanswered_ = call_error(proc, reply);
        done(reply);
      });
  if (status.ok()) return absl::OkStatus();
  if (client_->state() == rpcrdma::Client::State::kClosed) return connection_error();
  return apps::to_status(status.error(), nfs3::proc_info(spec.procedure)->name);
}

absl::Status Session::call_raw(const PreparedCall& prepared, std::vector<std::uint8_t>& results,
                               std::optional<std::size_t>* item_len) {
  struct Outcome {
    bool done = false;
    absl::Status status;
  } outcome;
  absl::Status started = start(prepared, [&](const rpcrdma::Reply& reply) {
    outcome.done = true;
    outcome.status = call_error(prepared.proc, reply);
    results.assign(reply.results.begin(), reply.results.end());
    if (item_len != nullptr) *item_len = reply.item_len;
  });
  if (!started.ok()) return started;
  while (!outcome.done) {
    if (absl::Status status = turn(); !status.ok()) {
      if (outcome.done) break;
      drain();
      return outcome.done && outcome.status.ok() && !absl::IsCancelled(status) ? absl::OkStatus() : status;
    }
  }
  return outcome.status;
}

void Session::drain() {
  if (!client_) return;
  const auto deadline = std::chrono::steady_clock::now() + kDrainTimeout;
  apps::Progress progress(apps::ProgressMode::kBlock, nullptr, kSpin);
  while (client_->num_outstanding() > 0 && client_->state() != rpcrdma::Client::State::kClosed &&
         std::chrono::steady_clock::now() < deadline) {
    progress.turn(*client_, deadline);
  }
  if (client_->num_outstanding() > 0) client_.reset();
}

absl::StatusOr<nfs3::FsinfoRes> Session::fsinfo() {
  if (fsinfo_) return *fsinfo_;
  nfs3::FsinfoRes res;
  if (absl::Status status = call(nfs3::Proc::kFsinfo, nfs3::FhArgs{root()}, res); !status.ok()) return status;
  if (absl::Status status = check(res.status, "FSINFO of " + url_.host); !status.ok()) return status;
  constexpr std::uint32_t kLeast = 1024;
  res.rtmax = std::clamp(res.rtmax, kLeast, nfs3::kMaxData);
  res.wtmax = std::clamp(res.wtmax, kLeast, nfs3::kMaxData);
  fsinfo_ = res;
  return res;
}

absl::Status Session::readlink(const nfs3::NfsFh3& fh, nfs3::ReadlinkRes& res, std::vector<std::uint8_t>& text) {
  text.assign(nfs3::kMaxPath, 0);
  PreparedCall prepared{.proc = nfs3::Proc::kReadlink, .result_item = text};
  nfs3::XdrWriter writer(prepared.args);
  emit(writer, nfs3::FhArgs{fh});
  std::vector<std::uint8_t> results;
  std::optional<std::size_t> item_len;
  if (absl::Status status = call_raw(prepared, results, &item_len); !status.ok()) return status;
  return take_readlink(results, item_len.value_or(0), res, text);
}

absl::Status Session::take_readlink(std::span<const std::uint8_t> results, std::size_t item_len, nfs3::ReadlinkRes& res,
                                    std::vector<std::uint8_t>& text) {
  nfs3::XdrReader reader(results);
  if (!parse(reader, res, nfs3::ItemForm::kReduced)) return undecodable(nfs3::Proc::kReadlink);
  if (res.status != Nfsstat3::kOk) return absl::OkStatus();
  if (res.data.len != item_len || item_len > text.size()) return undecodable(nfs3::Proc::kReadlink);
  text.resize(item_len);
  res.data.data = text;
  return absl::OkStatus();
}

absl::Status Session::symlink(const nfs3::SymlinkArgs& args, nfs3::NewObjectRes& res) {
  PreparedCall prepared{.proc = nfs3::Proc::kSymlink};
  nfs3::XdrWriter writer(prepared.args);
  emit(writer, args, nfs3::ItemForm::kReduced);
  prepared.item = rpcrdma::ArgumentItem{prepared.args.size(), args.symlink_data.data};
  std::vector<std::uint8_t> results;
  if (absl::Status status = call_raw(prepared, results, nullptr); !status.ok()) return status;
  nfs3::XdrReader reader(results);
  return parse(reader, res) ? absl::OkStatus() : undecodable(prepared.proc);
}

absl::Status Session::undecodable(nfs3::Proc proc) {
  return absl::UnavailableError(std::string("the results of ") +
                                nfs3::proc_info(static_cast<std::uint32_t>(proc))->name + " do not decode");
}

absl::Status Session::call_error(nfs3::Proc proc, const rpcrdma::Reply& reply) {
  if (reply.status == rpcrdma::CallStatus::kSuccess) return absl::OkStatus();
  const nfs3::ProcInfo* info = nfs3::proc_info(static_cast<std::uint32_t>(proc));
  std::string text = std::string(info->name) +
                     " failed: " + (reply.text.empty() ? rpcrdma::call_status_str(reply.status) : reply.text.c_str());
  const bool in_doubt = reply.status == rpcrdma::CallStatus::kTimeout ||
                        reply.status == rpcrdma::CallStatus::kDisconnected ||
                        reply.status == rpcrdma::CallStatus::kTransportError;
  // U1-4-06, U2-3-4: in general a transport error does not say what the server did.
  if (in_doubt && info->changes) {
    text += reply.did_not_run ? "; the server did not do it" : "; the server may or may not have done it";
  }
  if (reply.status == rpcrdma::CallStatus::kProcUnavail) return absl::UnimplementedError(text);
  return absl::UnavailableError(text);
}

}  // namespace weft::nfs
