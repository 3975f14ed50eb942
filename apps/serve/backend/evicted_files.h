#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "apps/serve/backend/open_file.h"
#include "apps/serve/export/file_stat.h"
#include "base/ledger.h"

namespace weft::serve {

// EvictedFiles holds files that lost their place among the open files before their writes were synced. Each stays open
// until a worker of the sync lane has synced it, so the Call that needs the place does not wait for the disk. A place
// here belongs to the address whose Call evicts the file. An address has one place of its own, and up to a quarter of
// the `max_files` places that all addresses share. There are twice `max_files` places at most. Not thread-safe.
class EvictedFiles {
 public:
  using Named = std::pair<FileKey, std::shared_ptr<OpenFile>>;

  // all_places: how many files are here at most.
  static constexpr std::size_t all_places(std::size_t max_files) { return 2 * std::max<std::size_t>(max_files, 1); }

  explicit EvictedFiles(std::size_t max_files)
      : max_files_(all_places(max_files)),
        places_({.address = max_files / 4, .all = max_files, .guaranteed = 1, .one_may_fill = false}) {}

  // add: false if the address has no place for it, or the file is here by another descriptor.
  bool add(const FileKey& key, std::shared_ptr<OpenFile> file, const std::string& address);
  // take removes the file; null if it is not here.
  std::shared_ptr<OpenFile> take(const FileKey& key);
  std::shared_ptr<OpenFile> find(const FileKey& key) const;

  // begin_sync gives a file that waits to the worker that calls it. The worker syncs the file and calls end_sync, which
  // takes the file out. A file that another thread may still write stays instead, and waits again after retry().
  std::optional<Named> begin_sync();
  void end_sync(const Named& synced);
  void retry();
  std::size_t num_waiting() const { return num_waiting_; }
  std::size_t size() const { return files_.size(); }

 private:
  enum class State : std::uint8_t { kWaits, kIsSynced, kStays };
  struct File {
    std::shared_ptr<OpenFile> open;
    Lease place;
    std::string address;
    State state = State::kWaits;
  };

  const std::size_t max_files_;
  Ledger places_;
  std::map<std::string, Ledger::Client> addresses_;  // that have files here
  std::unordered_map<FileKey, File, FileKeyHash> files_;
  std::size_t num_waiting_ = 0;
};

}  // namespace weft::serve
