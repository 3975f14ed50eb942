#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/serve/export/file_stat.h"
#include "apps/serve/export/index_log.h"

namespace weft::serve {

// PathIndex remembers under which names files were last seen: key -> {parent's key, name}, a few per file. It is a hint
// only: whoever walks a path from here verifies that it leads to the file, and searches the tree where it does not. So
// a lost or stale index costs time, never truth. Bounded: what was not asked for longest goes first. Any thread.
class PathIndex {
 public:
  struct Name {
    FileKey parent;
    std::string name;
    friend bool operator==(const Name&, const Name&) = default;
  };

  // log may be null: then nothing outlives the process. What it held becomes the content.
  PathIndex(const FileKey& root, std::size_t max_files, std::unique_ptr<IndexLog> log);

  // learn: `file` was seen in `parent` under `name`.
  void learn(const FileKey& file, const FileKey& parent, std::string_view name);
  // forget_name: it is not there any more; forget: the file is gone.
  void forget_name(const FileKey& file, const FileKey& parent, std::string_view name);
  void forget(const FileKey& file);

  // How many directories deep a file may lie to be found; 1 is the root's own. Bounds what one path costs.
  static constexpr std::size_t kMaxDepth = 1024;
  // Names kept for one file: hard links beyond that are found by search.
  static constexpr std::size_t kMaxNames = 4;

  // Where a file may be found: its path from the root, how many names that has, and the last of them.
  struct Candidate {
    std::string path;
    std::size_t depth = 0;
    Name name;
  };
  // Likeliest first; empty where nothing is known, and for the root. With too_deep comes whether a name was left out
  // because it lies deeper than kMaxDepth.
  std::vector<Candidate> paths(const FileKey& file, bool* too_deep = nullptr);
  // The likeliest; nothing where none is known, or where another thread has the index.
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
    std::vector<Name> names;  // the last one learnt first
    std::list<FileKey>::iterator recent;
  };

  bool insert_locked(const FileKey& file, const FileKey& parent, std::string_view name);
  void drop_name_locked(const FileKey& file, const FileKey& parent, std::string_view name);
  void touch_locked(Entry& entry);
  enum class Way : std::uint8_t { kFound, kUnknown, kTooDeep };
  Way candidate_locked(const Name& name, Candidate& out);
  bool is_ring_locked(const FileKey& dir) const;
  void append_locked(IndexRecord record);
  void rewrite_locked();

  const FileKey root_;
  const std::size_t max_files_;
  mutable std::mutex mutex_;
  std::unordered_map<FileKey, Entry, FileKeyHash> files_;
  std::list<FileKey> recent_;  // front: asked for last
  std::unique_ptr<IndexLog> log_;
};

}  // namespace weft::serve
