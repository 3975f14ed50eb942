#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "apps/nfs/flow.h"
#include "apps/nfs/task.h"
#include "apps/nfs/url.h"

namespace weft::nfs {

class Runner;

// A directory that is nested more deeply than this is an error.
inline constexpr int kMaxDepth = 512;

// TreeLimits bound the memory and descriptors of the work on a tree, whatever the tree.
struct TreeLimits {
  std::size_t files = 128;               // under way at once
  std::size_t small_file = 256 << 10;    // bytes of a file that is held whole in memory; larger files go one at a time
  std::size_t octets = 16 << 20;         // bytes of small files held at once
  std::size_t open_dirs = 600;           // more than kMaxDepth, so that the walk can always go on
  std::size_t listed_octets = 64 << 20;  // bytes of directory entries that wait while the walk is below them
};

// TreeCounts are the numbers of a progress line.
struct TreeCounts {
  std::uint64_t files = 0;
  std::uint64_t octets = 0;
  std::uint64_t found_files = 0;  // by the walk so far, or by the count of the whole tree
  std::uint64_t found_octets = 0;
  bool found_all = false;
};

// progress_text: "1234 of 20000 files, 5.1 MiB, 2.5 MB/s, 1500 files/s, 12 s left".
std::string progress_text(const TreeCounts& counts, double seconds);

// TreeWork is the common part of `get -r`, `put -r` and `rm -r`. One walk finds the work and waits for a place for each
// piece of it. A bounded number of files are under way at once, over one connection:
//
//   walk --begin()--> places for files and bytes --Flow::spawn--> file ... file        (each a Task)
//     |                                                              |
//     +--share(directory)<-------- every Task holds its directory ---+---> last one: end of the directory
//
// A file that fails is reported and the rest goes on. After the connection was lost or a stop signal came, nothing new
// begins, and the work under way cleans up.
class TreeWork {
 public:
  TreeWork(Runner& runner, Flow& flow, const TreeLimits& limits);
  TreeWork(const TreeWork&) = delete;
  TreeWork& operator=(const TreeWork&) = delete;

  const TreeLimits& limits() const { return limits_; }
  Flow& flow() { return flow_; }
  TreeCounts& counts() { return counts_; }

  // Places of one file under way; the file gives them back when it ends.
  struct Places {
    SlotsHeld file;
    SlotsHeld octets;
  };
  // begin waits for the places of one file that holds `octets` bytes in memory.
  Task<Places> begin(std::size_t octets);
  // One large file moves at a time.
  Slots& large_file() { return large_file_; }
  Slots& open_dirs() { return open_dirs_; }

  // Entries of a directory to which the walk still has to come back. False: too many entries are held already.
  class Listed {
   public:
    explicit Listed(TreeWork& work) : work_(work) {}
    ~Listed() { work_.listed_octets_ -= octets_; }
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;
    bool set(std::size_t octets);

   private:
    TreeWork& work_;
    std::size_t octets_ = 0;
  };

  // share makes a directory that ends with its last holder: `end` then gets it, as a Task of its own. The entries of a
  // directory hold it, and it holds its parent, so directories end from the leaves to the root.
  template <typename Dir>
  std::shared_ptr<Dir> share(std::unique_ptr<Dir> dir, std::function<Task<void>(std::unique_ptr<Dir>)> end) {
    return std::shared_ptr<Dir>(
        dir.release(), [this, end = std::move(end)](Dir* last) { flow_.spawn(end(std::unique_ptr<Dir>(last))); });
  }

  // report takes the outcome of one piece of work. It prints an error, and stops the Flow if it makes no sense to go
  // on. It does not print an error that comes from the stopped Flow. Returns status.ok().
  bool report(const absl::Status& status);
  // found: the walk has found one more file. has_found_all: the numbers of the whole tree.
  void found(std::uint64_t octets);
  void has_found_all(std::uint64_t files, std::uint64_t octets);
  // count_remote and count_local count a whole tree beside the walk, so that a progress line can tell the time left:
  // the walk itself is never far ahead of the work. They leave out the directories that they cannot read.
  Task<void> count_remote(nfs3::NfsFh3 dir, Url url);
  Task<void> count_local(std::string path);

  // run runs the walk and everything it began. Returns why it was stopped early, or OK.
  absl::Status run(Task<void> walk);

 private:
  void show_progress();
  Task<bool> count_below(nfs3::NfsFh3 dir, Url url, int depth, TreeCounts& sum);

  Runner& runner_;
  Flow& flow_;
  const TreeLimits limits_;
  Slots files_;
  Slots octets_;
  Slots large_file_;
  Slots open_dirs_;
  std::size_t listed_octets_ = 0;
  TreeCounts counts_;
  std::uint64_t walked_files_ = 0;
  std::uint64_t walked_octets_ = 0;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace weft::nfs
