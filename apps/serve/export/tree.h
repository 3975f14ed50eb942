#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "apps/nfs3/types.h"
#include "apps/serve/export/beneath.h"
#include "apps/serve/export/file_stat.h"
#include "apps/serve/export/handle.h"
#include "apps/serve/export/path_index.h"

namespace weft::serve {

struct TreeConfig {
  std::string directory;                        // what is exported
  std::string state_dir;                        // key and index; made (mode 0700) where it is missing
  std::size_t max_indexed_files = 1 << 19;      // memory: some 250 octets each
  std::size_t max_search_entries = 20'000'000;  // directory entries that one search reads
};

// Node is one file of the export, held open as O_PATH and verified to lie beneath the root when it was resolved.
struct Node {
  std::shared_ptr<const Fd> fd;
  FileKey key;
  FileStat stat;  // as of then

  int path_fd() const { return fd->get(); }
};

// Tree is the exported directory: names and handles to files and back, never outside of it and never through a symbolic
// link. All of it but resolve_now and key_of blocks on the disk; any thread.
class Tree {
 public:
  static absl::StatusOr<std::unique_ptr<Tree>> open(const TreeConfig& config);

  Node root() const { return root_; }
  const std::string& real_path() const { return real_path_; }

  // resolve finds the file of a handle. EBADMSG: not ours; ESTALE: the file was removed; EAGAIN: another search is
  // going on, ask again later.
  Outcome<Node> resolve(const nfs3::NfsFh3& handle);
  Outcome<Node> resolve(const FileKey& key);
  // resolve_now: the same where the path to the file is in the kernel's memory and no other thread is in the way;
  // otherwise nothing, which says nothing about the file.
  std::optional<Node> resolve_now(const FileKey& key);
  // key_of: the checks of a handle alone, without the disk.
  Outcome<FileKey> key_of(const nfs3::NfsFh3& handle) const { return codec_->parse(handle); }
  // fsid_of: the same after a restart for the root's filesystem.
  std::uint64_t fsid_of(const FileKey& key) const { return key.dev == 0 ? export_id_ : key.dev; }
  nfs3::NfsFh3 handle_of(const FileKey& key) const { return codec_->make(key); }

  // lookup finds one name in a directory and remembers where the file lies. "." is the directory, ".." its parent,
  // which for the root is the root.
  Outcome<Node> lookup(const Node& dir, std::string_view name);
  // peek is lookup for a plain name without remembering.
  Outcome<Node> peek(const Node& dir, std::string_view name) const;
  Outcome<Node> parent_of(const Node& dir);
  // open_path walks a path of plain names from the root, for MNT.
  Outcome<Node> open_path(std::string_view path);

  // What the server itself did.
  void on_seen(const FileKey& file, const FileKey& parent, std::string_view name);
  void on_name_gone(const FileKey& file, const FileKey& parent, std::string_view name);
  void on_gone(const FileKey& file);

  std::uint64_t num_searches() const { return num_searches_.load(std::memory_order_relaxed); }

 private:
  class SearchTurn;
  Tree() = default;
  Outcome<Node> node_at(int dir_fd, std::string_view path, Walk walk = Walk::kAny) const;
  Outcome<Node> resolve_by_index(const FileKey& key);
  Outcome<Node> search(const FileKey& key);
  bool is_known_gone(const FileKey& key);

  Node root_;
  FileKey state_dir_key_;
  std::uint64_t root_dev_ = 0;
  std::uint64_t export_id_ = 0;
  std::string real_path_;
  std::size_t max_search_entries_ = 0;
  std::unique_ptr<HandleCodec> codec_;
  std::unique_ptr<PathIndex> index_;
  std::mutex search_mutex_;
  std::condition_variable search_ended_;
  bool is_searching_ = false;
  std::atomic<std::uint64_t> num_searches_{0};

  // Files that a search did not find or that were removed here: no second search for them. Bounded, oldest out.
  std::mutex gone_mutex_;
  std::list<FileKey> gone_order_;
  std::unordered_map<FileKey, std::list<FileKey>::iterator, FileKeyHash> gone_;
};

}  // namespace weft::serve
