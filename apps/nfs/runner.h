#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/common/command.h"
#include "apps/common/signals.h"
#include "apps/nfs/json.h"
#include "apps/nfs/session.h"
#include "apps/nfs/transfer.h"
#include "apps/nfs/tree_work.h"

namespace weft::nfs {

// NfsOptions are the options of all `weft nfs` commands; each command registers its own ones.
struct NfsOptions {
  bool json = false;
  bool stats = false;
  bool recursive = false;
  bool long_format = false;
  bool all = false;
  bool force = false;
  bool parents = false;
  bool symbolic = false;
  bool preserve = false;
  bool sync = false;
  bool unsorted = false;
  bool dereference = false;
  std::chrono::milliseconds timeout{0};    // 0: the session's own
  std::optional<std::uint32_t> in_flight;  // READs or WRITEs of a large file, and small files, at once
  TransferLimits limits;                   // all but in_flight
  TreeLimits tree;                         // likewise
  std::size_t max_sorted = 256 << 20;      // bytes of directory entries that ls holds to sort them
  std::vector<std::string> names;          // the operands of the command, as typed
};

// ProgressLine is one line on stderr that is rewritten ten times a second if stderr is a terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }

  bool is_terminal() const { return is_terminal_; }
  // begin starts to count the octets of one file; total 0: not known.
  void begin(std::string name, std::uint64_t total);
  void update(std::uint64_t octets);
  // show writes another text instead, when the next update is due.
  void show(const std::function<std::string()>& text);
  // clear removes the line, so that other output can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  // Work that ends within this time needs no line.
  static constexpr std::chrono::milliseconds kQuiet{300};
  bool is_time();

  bool is_terminal_;
  bool is_shown_ = false;
  std::string name_;
  std::uint64_t total_ = 0;
  Clock::time_point started_;
  Clock::time_point next_ = Clock::now() + kQuiet;
};

// Runner is one run of one `weft nfs` command: its device, its sessions and its exit status.
class Runner {
 public:
  Runner(const apps::GlobalOptions& globals, const NfsOptions& options) : globals_(globals), options_(options) {}
  ~Runner();

  const NfsOptions& options() const { return options_; }

  // session is the session for url's export; it is mounted at first use.
  absl::StatusOr<Session*> session(const Url& url);
  // transfer is the Transfer of that session.
  Transfer& transfer(Session& session);
  // tree_limits: how much of a tree is worked on at once.
  TreeLimits tree_limits() const;
  ProgressLine& progress() { return progress_; }

  // report takes the outcome of one part of the work: it prints an error, which makes the exit status 1. Returns
  // whether it makes sense to go on: not after the connection was lost or a stop signal came. It does not print errors
  // after that.
  bool report(const absl::Status& status);
  // warn prints a line to stderr.
  void warn(const std::string& line);
  // end_with_reader is for a reader of standard output that has left, as after `weft nfs cat URL | head`. An error that
  // was reported before still makes the exit status 1.
  void end_with_reader() {
    if (exit_status_ == apps::kExitDone) exit_status_ = apps::kExitReaderLeft;
  }
  // print writes one line of results to stdout.
  void print(const std::string& line);

  // finish prints --stats and returns the exit status.
  int finish();

 private:
  struct Mounted {
    std::unique_ptr<Session> session;
    std::unique_ptr<Transfer> transfer;
  };

  const apps::GlobalOptions& globals_;
  const NfsOptions& options_;
  apps::StopSignals stop_;
  std::unique_ptr<verbs::Device> device_;
  std::vector<Mounted> mounted_;
  ProgressLine progress_;
  int exit_status_ = apps::kExitDone;
  bool is_over_ = false;
};

// remote_names is parse_url for each of the texts.
absl::StatusOr<std::vector<Url>> remote_names(const std::vector<std::string>& texts);

// The commands. Each does all of options().names and reports to the runner.
void run_ls(Runner& runner);
void run_stat(Runner& runner);
void run_cat(Runner& runner);
void run_get(Runner& runner);
void run_put(Runner& runner);
void run_mkdir(Runner& runner);
void run_rm(Runner& runner);
void run_mv(Runner& runner);
void run_ln(Runner& runner);

}  // namespace weft::nfs
