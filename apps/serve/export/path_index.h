#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/serve/export/file_stat.h"
#include "apps/serve/export/index_log.h"
#include "apps/serve/export/shared_order.h"

namespace weft::serve {

// PathIndex remembers under which names files were last seen: key -> {parent's key, name}, a few per file. It is only a
// hint: the caller walks the path, verifies that it leads to the file, and searches the tree if it does not. A lost or
// stale index costs time, never truth. The index is bounded: of the client that holds most places, the file that was
// not asked for longest goes first (SharedOrder). A file takes a place with its longest name, and more with further
// ones. ActingFor says for which client a thread asks. Any thread.
class PathIndex {
 public:
  struct Name {
    FileKey parent;
    std::string name;
    friend bool operator==(const Name&, const Name&) = default;
  };

  // log may be null: the index then ends with the process. Otherwise the records of the log become the content.
  PathIndex(const FileKey& root, std::size_t max_places, std::unique_ptr<IndexLog> log);

  // learn: `file` was seen in `parent` under `name`.
  void learn(const FileKey& file, const FileKey& parent, std::string_view name);
  // forget_name: the file does not have this name any more. forget: the file is gone.
  void forget_name(const FileKey& file, const FileKey& parent, std::string_view name);
  void forget(const FileKey& file);

  // The client has ended, and no thread acts for it any more: its entries become its address's. Waits for no thread.
  void on_client_end(const DiskClient& client);
  // The number of clients that have entries, and of addresses that have entries of clients that ended.
  std::size_t num_holders() const;

  // How many directories deep a file may lie to be found; a file in the root has depth 1. It bounds the cost of one
  // path.
  static constexpr std::size_t kMaxDepth = 1024;
  // Names kept for one file: a search finds the hard links beyond them.
  static constexpr std::size_t kMaxNames = 4;

  // Where a file may be found: its path from the root, the number of names in the path, and the last name.
  struct Candidate {
    std::string path;
    std::size_t depth = 0;
    Name name;
  };
  // Likeliest first; empty if nothing is known, and for the root. *too_deep says whether a name was left out because it
  // lies deeper than kMaxDepth.
  std::vector<Candidate> paths(const FileKey& file, bool* too_deep = nullptr);
  // The likeliest; nothing if none is known, or if another thread has the index.
  std::optional<Candidate> path_now(const FileKey& file);
  std::vector<Name> names(const FileKey& file) const;

  // twin: the oldest key that has the inode number of `file`, but not its birth time, and was last seen in `parent`
  // under `name`.
  std::optional<FileKey> twin(const FileKey& file, const FileKey& parent, std::string_view name) const;
  // twins: all keys that have the inode number of `file`, but not its birth time.
  std::vector<FileKey> twins(const FileKey& file) const;
  std::size_t num_files() const;

 private:
  struct Entry {
    std::vector<Name> names;  // the last one learnt comes first
    SharedOrder<FileKey>::Place place;

    std::size_t num_places() const;
  };
  // The log is being rewritten: these keys, of which `next` is the first that is yet to be copied.
  struct Rewriting {
    std::vector<FileKey> keys;
    std::size_t next;
  };

  bool insert_locked(const FileKey& file, const FileKey& parent, std::string_view name);
  void drop_name_locked(const FileKey& file, const FileKey& parent, std::string_view name);
  void touch_locked(Entry& entry);
  void erase_locked(const FileKey& file);
  enum class Way : std::uint8_t { kFound, kUnknown, kTooDeep };
  Way candidate_locked(const Name& name, Candidate& out);
  bool is_ring_locked(const FileKey& dir) const;
  void evict_for_locked(std::size_t num_places);
  void append_locked(const IndexRecord& record);
  void begin_rewrite_locked();
  void rewrite_some_locked(std::size_t num_files);

  const FileKey root_;
  const std::size_t max_places_;
  mutable std::mutex mutex_;
  std::unordered_map<FileKey, Entry, FileKeyHash> files_;
  SharedOrder<FileKey> order_;
  ClientEnds ended_;  // not yet in order_
  std::unique_ptr<IndexLog> log_;
  std::optional<Rewriting> rewriting_;
  std::size_t no_rewrite_before_ = 0;  // so many records, counted from the last attempt
};

}  // namespace weft::serve
