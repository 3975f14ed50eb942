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

  // Where a file may be found: its path from the root, and the last step of it.
  struct Candidate {
    std::string path;
    Name name;
  };
  // Likeliest first; empty where nothing is known, and for the root.
  std::vector<Candidate> paths(const FileKey& file);
  // The likeliest path; nothing where none is known, or where another thread has the index.
  std::optional<std::string> path_now(const FileKey& file);
  std::vector<Name> names(const FileKey& file) const;
  std::size_t num_files() const;

 private:
  // Names kept for one file: hard links beyond that are found by search.
  static constexpr std::size_t kMaxNames = 4;
  static constexpr std::size_t kMaxDepth = 4096;

  struct Entry {
    std::vector<Name> names;  // the last one learnt first
    std::list<FileKey>::iterator recent;
  };

  bool insert_locked(const FileKey& file, const FileKey& parent, std::string_view name);
  void drop_name_locked(const FileKey& file, const FileKey& parent, std::string_view name);
  void touch_locked(Entry& entry);
  bool parent_path_locked(const FileKey& dir, std::string& path);
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
