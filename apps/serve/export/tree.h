#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
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
#include "apps/serve/export/client.h"
#include "apps/serve/export/file_stat.h"
#include "apps/serve/export/handle.h"
#include "apps/serve/export/path_index.h"
#include "apps/serve/export/search.h"
#include "apps/serve/export/search_wishes.h"
#include "apps/serve/export/siphash.h"

namespace weft::serve {

struct TreeConfig {
  std::string directory;
  std::string state_dir;                        // key and index; made (mode 0700) if it is missing
  bool cross_mounts = false;                    // also exports filesystems that are mounted beneath the directory
  std::size_t max_indexed_files = 1 << 19;      // places (PathIndex) of 250 to 650 octets
  std::size_t max_search_entries = 20'000'000;  // directory entries that one search reads
  std::function<void()> on_search = {};         // for tests: called when a search begins
  std::function<void()> on_tree_search = {};    // for tests: called when a search of the tree has its turn
};

// Node is one file of the export, held open as O_PATH. It was verified to lie beneath the root when it was resolved.
struct Node {
  std::shared_ptr<const Fd> fd;
  FileKey key;
  FileStat stat;          // when it was resolved
  std::size_t depth = 0;  // names from the root to it; 0 is the root

  int path_fd() const { return fd->get(); }
};

// Tree is the exported directory. It turns names and handles into files and back: never outside of the directory, never
// through a symbolic link, and into mounts beneath it only if cross_mounts asks for that. Names deeper than
// PathIndex::kMaxDepth are ENAMETOOLONG. Everything but resolve_now and key_of blocks on the disk. Any thread.
class Tree {
 public:
  // The most descriptors that a call has open at once. The Node that it returns counts; its caller's do not.
  // find and resolve_now: a path beyond PATH_MAX is walked in pieces, and each piece starts from the one before.
  static constexpr std::size_t kDescriptorsOfFind = 2;
  // resolve: a search has a directory open as a Node and for reading (search_dir), and compares one file in it. The
  // search of the tree has two, and it runs in the same task. lookup of ".." is a resolve.
  static constexpr std::size_t kDescriptorsOfResolve = 3;

  static absl::StatusOr<std::unique_ptr<Tree>> open(const TreeConfig& config);

  Node root() const { return root_; }
  const std::string& real_path() const { return real_path_; }

  // resolve finds the file of a handle. EBADMSG: not a handle of this server. ESTALE: the file was removed. EAGAIN:
  // another search is going on. The next one is for this file, too: ask again later.
  Outcome<Node> resolve(const nfs3::NfsFh3& handle);
  Outcome<Node> resolve(const FileKey& key);
  // find is resolve without reading directories, for callers that hold locks. ENOENT: only a search can tell.
  Outcome<Node> find(const FileKey& key);
  // resolve_now is resolve if the path to the file is in the kernel's memory and no other thread is in the way.
  // Otherwise it returns nothing, which says nothing about the file.
  std::optional<Node> resolve_now(const FileKey& key);
  // key_of only checks a handle, without the disk.
  Outcome<FileKey> key_of(const nfs3::NfsFh3& handle) const { return codec_->parse(handle); }
  // fsid_of: for the root's filesystem it is the same after a restart.
  std::uint64_t fsid_of(const FileKey& key) const { return key.dev == 0 ? export_id_ : key.dev; }
  // The key of a file that was just made here, or of the root.
  FileKey key_of(const FileStat& st) const;
  // The key of READDIR's cookies (DirListing); the same after a restart.
  const SipHashKey& cookie_key() const { return cookie_key_; }
  nfs3::NfsFh3 handle_of(const FileKey& key) const { return codec_->make(key); }

  // lookup finds one name in a directory and remembers where the file lies. "." is the directory, ".." its parent; the
  // parent of the root is the root.
  Outcome<Node> lookup(const Node& dir, std::string_view name);
  // peek is lookup for a plain name without remembering. EACCES: a mount that is not exported stands there.
  Outcome<Node> peek(const Node& dir, std::string_view name) const;
  // peek_made is peek for a file that was just made under that name. Any earlier file with its inode number is gone.
  Outcome<Node> peek_made(const Node& dir, std::string_view name);
  // check_new: whether `name` may be made in `dir`: 0 or an errno value.
  static int check_new(const Node& dir, std::string_view name);
  Outcome<Node> parent_of(const Node& dir);
  // open_path walks a path of plain names from the root, for MNT.
  Outcome<Node> open_path(std::string_view path);

  // Changes that the server itself made.
  void on_seen(const FileKey& file, const FileKey& parent, std::string_view name);
  void on_name_gone(const FileKey& file, const FileKey& parent, std::string_view name);
  void on_gone(const FileKey& file);

  // The client has ended, and no thread acts for it any more (PathIndex::on_client_end). Waits for no thread.
  void on_client_end(const DiskClient& client) {
    index_->on_client_end(client);
    ended_.add(client, wishes_, search_mutex_);
  }
  // PathIndex::num_holders
  std::size_t num_index_holders() const { return index_->num_holders(); }

  std::uint64_t num_searches() const { return num_searches_.load(std::memory_order_relaxed); }

 private:
  class SearchTurn;
  Tree() = default;
  Outcome<Node> node_at(const Node& dir, std::string_view path, std::size_t num_names, bool cached = false) const;
  bool settle(Node& found, const FileKey& key) const;
  SearchScope scope() const;
  Outcome<Node> resolve_by_index(const FileKey& key);
  Outcome<Node> search(const FileKey& key);
  // Reads the tree for this file, and for all others that clients were told to ask for again.
  Found search_for_all(const FileKey& key);
  bool is_known_gone(const FileKey& key);

  Node root_;
  Fd state_dir_;  // held open, so that no other directory gets its inode number
  FileStat state_dir_stat_;
  SipHashKey cookie_key_;
  bool cross_mounts_ = false;
  bool on_overlay_ = false;
  std::uint64_t root_dev_ = 0;
  std::uint64_t export_id_ = 0;
  std::string real_path_;
  std::size_t max_search_entries_ = 0;
  std::function<void()> on_search_, on_tree_search_;
  std::unique_ptr<HandleCodec> codec_;
  std::unique_ptr<PathIndex> index_;
  std::mutex search_mutex_;
  std::condition_variable search_ended_;
  bool is_searching_ = false;
  SearchWishes wishes_;
  ClientEnds ended_;  // not yet in wishes_
  std::atomic<std::uint64_t> num_searches_{0};

  // Files that a search did not find, and files that were removed here: they get no second search. Bounded, oldest out.
  std::mutex gone_mutex_;
  std::list<FileKey> gone_order_;
  // A file system may give one inode number to thousands of them, one after the other.
  struct BirthHash {
    std::size_t operator()(const FileKey& key) const {
      return FileKeyHash()(key) ^ static_cast<std::size_t>(key.btime_ns) * 0x9e3779b97f4a7c15u;
    }
  };
  std::unordered_map<FileKey, std::list<FileKey>::iterator, BirthHash> gone_;
};

}  // namespace weft::serve
