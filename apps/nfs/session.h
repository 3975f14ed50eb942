#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/common/global_options.h"
#include "apps/common/progress.h"
#include "apps/common/signals.h"
#include "apps/nfs/mount_client.h"
#include "apps/nfs/silence.h"
#include "apps/nfs/url.h"
#include "apps/nfs3/codec.h"
#include "base/time.h"
#include "rpcrdma/client.h"

namespace weft::nfs {

// PreparedCall is one NFSv3 Call and the memory of its arguments. It stays in its place until the Call has ended.
struct PreparedCall {
  nfs3::Proc proc = nfs3::Proc::kNull;
  std::vector<std::uint8_t> args = {};
  std::optional<rpcrdma::ArgumentItem> item = std::nullopt;
  MutBytes result_item = {};
};

class Session;

// Patience says when to try again after the server was not ready: after a tenth of a second, then more rarely, and not
// for ever.
class Patience {
 public:
  // session outlives the value. It hears of each time that the server was not ready.
  explicit Patience(Session& session) : session_(session) {}

  // again: whether to try once more; if so, next() says when.
  bool again();
  TimePoint next() const { return next_; }
  bool is_time() const { return std::chrono::steady_clock::now() >= next_; }

 private:
  Session& session_;
  std::chrono::milliseconds pause_{100};
  std::optional<TimePoint> give_up_;
  TimePoint next_;
};

// Endurance says what a Session does when its connection ends. A restarted server executes Calls again that it had done
// and not answered yet. For NFSv3 that is right if the procedure is idempotent; the other procedures may then fail.
struct Endurance {
  std::chrono::milliseconds reconnect_for{0};  // 0: the session is over
  // How long a Call waits for its Reply, over all connections, and each request of MOUNT for its answer. Connecting
  // takes ten seconds at most, and no longer than this. 0: a minute, and reconnect_for; for MOUNT ten seconds.
  std::chrono::milliseconds timeout{0};
  std::chrono::milliseconds tell_after{5000};  // of a silence of the server
  // Gets one line each when the connection was lost, when it is back, when the server does not respond, when it
  // responds again, and when it is not ready for long (NFS3ERR_JUKEBOX).
  std::function<void(const std::string&)> tell;
};

// Session is one mounted server: the RPC-over-RDMA connection and the export's root. Calls run one at a time with
// call(), or many at once with start() and turn(). One thread. The Statuses of its functions are about transport and
// RPC; nfsstat3 is in the results.
class Session {
 public:
  // Mounts and connects. device and stop outlive the session. Errors: one line that says which of the two failed.
  static absl::StatusOr<std::unique_ptr<Session>> open(const Url& url, const apps::GlobalOptions& options,
                                                       verbs::Device& device, const apps::StopSignals& stop,
                                                       Endurance endurance = {});
  ~Session();

  const Url& url() const { return url_; }
  // For Calls of other code. Precondition: no call of the session failed.
  rpcrdma::Client& client() { return *client_; }
  const rpcrdma::OpaqueAuth& cred() const { return export_.cred; }
  const nfs3::NfsFh3& root() const { return export_.root; }
  const std::vector<std::string>& export_path() const { return export_.export_path; }

  // FSINFO of the root, asked for once. Limits are made sane: rtmax and wtmax from 1024 to nfs3::kMaxData.
  absl::StatusOr<nfs3::FsinfoRes> fsinfo();

  // call sends one Call and waits for its results. If the server is not ready (NFS3ERR_JUKEBOX), it sends the Call
  // again after a pause, for a minute at most. Not for messages with an eligible item.
  template <typename Args, typename Res>
  absl::Status call(nfs3::Proc proc, const Args& args, Res& res) {
    PreparedCall prepared{.proc = proc};
    nfs3::XdrWriter writer(prepared.args);
    emit(writer, args);
    for (Patience patience(*this);;) {
      std::vector<std::uint8_t> results;
      if (absl::Status status = call_raw(prepared, results, nullptr); !status.ok()) return status;
      nfs3::XdrReader reader(results);
      if (!parse(reader, res)) return undecodable(proc);
      if (res.status != nfs3::Nfsstat3::kJukebox || !patience.again()) return absl::OkStatus();
      if (absl::Status status = pause_until(patience.next()); !status.ok()) return status;
    }
  }
  // READLINK: the text of a symbolic link comes in res.data, which views `text`.
  absl::Status readlink(const nfs3::NfsFh3& fh, nfs3::ReadlinkRes& res, std::vector<std::uint8_t>& text);
  // take_readlink parses the results of a READLINK whose result_item was all of `text`. res and text are then as after
  // readlink.
  static absl::Status take_readlink(std::span<const std::uint8_t> results, std::size_t item_len, nfs3::ReadlinkRes& res,
                                    std::vector<std::uint8_t>& text);
  // tell_not_ready tells the user once that the server answers NFS3ERR_JUKEBOX, if this goes on for
  // Endurance::tell_after. waited: since the first such answer to one Call. left: until the Call is given up.
  void tell_not_ready(Duration waited, Duration left);
  // SYMLINK with the text of the link.
  absl::Status symlink(const nfs3::SymlinkArgs& args, nfs3::NewObjectRes& res);

  // start queues a Call; done runs from a later turn(). `prepared` and the memory that it views live until then.
  absl::Status start(const PreparedCall& prepared, rpcrdma::ReplyCallback done);
  // Why the first Call without an answer within the time for each of them failed; empty if there is none. All further
  // ones would wait as long.
  const std::optional<absl::Status>& unanswered() const { return unanswered_; }
  // turn makes progress. It sleeps until there is some, extra_fd is readable or `until` has come. Errors: the
  // connection ended, or a stop signal came.
  absl::Status turn(int extra_fd = -1, std::optional<TimePoint> until = std::nullopt);
  // drain waits for all started Calls to end, and ends the connection if they do not end in time. Afterwards no memory
  // of these Calls is in use. Stop signals do not shorten it.
  void drain();

  // While a Cleanup lives, Calls go out in spite of a stop signal, for a few seconds, so that a temporary file can be
  // removed.
  class Cleanup {
   public:
    explicit Cleanup(Session& session);
    ~Cleanup() { session_.cleanup_until_.reset(); }
    Cleanup(const Cleanup&) = delete;
    Cleanup& operator=(const Cleanup&) = delete;

   private:
    Session& session_;
  };

  // The traffic of this session.
  verbs::QpCounters counters() const { return client_ ? client_->counters() : verbs::QpCounters{}; }

  static absl::Status undecodable(nfs3::Proc proc);
  static absl::Status call_error(nfs3::Proc proc, const rpcrdma::Reply& reply);

 private:
  Session(Url url, MountedExport mounted, const apps::StopSignals& stop, apps::ProgressMode mode, Endurance endurance);
  absl::Status connect(const apps::GlobalOptions& options, verbs::Device& device);
  // call_raw waits; item_len gets Reply::item_len.
  absl::Status call_raw(const PreparedCall& prepared, std::vector<std::uint8_t>& results,
                        std::optional<std::size_t>* item_len);
  absl::Status connection_error() const;
  void tell_of_connection();
  void tell_of_silence();
  absl::Status pause_until(TimePoint until);

  Url url_;
  MountedExport export_;
  const apps::StopSignals& stop_;
  std::optional<absl::Status> unanswered_;
  apps::ProgressMode progress_mode_;
  apps::Progress progress_;
  Endurance endurance_;
  SilenceWatch silence_{endurance_.tell_after};
  rpcrdma::ReplyCounts replies_before_;  // at the last answer
  bool told_not_ready_ = false;
  bool lost_ = false;
  std::uint64_t num_connections_ = 0;  // connections at the last message to the user
  std::optional<TimePoint> cleanup_until_;
  std::optional<nfs3::FsinfoRes> fsinfo_;
  std::unique_ptr<rpcrdma::Client> client_;
};

// check turns an nfsstat3 into a Status: "WHAT: no such file or directory". kNotFound, kAlreadyExists,
// kFailedPrecondition (NOTDIR, ISDIR, NOTEMPTY) and kUnknown.
absl::Status check(nfs3::Nfsstat3 status, const std::string& what);

}  // namespace weft::nfs
