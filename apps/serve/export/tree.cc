#include "apps/serve/export/tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "apps/serve/export/index_log.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace weft::serve {
namespace {

constexpr std::size_t kMaxGone = 65536;
constexpr std::chrono::milliseconds kSearchWait{50};

absl::StatusOr<Fd> open_state_dir(const std::string& path) {
  // This makes the parents too: ~/.local/state is often missing.
  for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), 0700);
  ::mkdir(path.c_str(), 0700);
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat st {};
  if (!fd || ::fstat(fd.get(), &st) != 0)
    return absl::PermissionDeniedError(fmt::format(
        "cannot open the state directory {}: {}; name another with --state-dir", path, std::strerror(errno)));
  // The directory holds the key that signs handles. Any user with write permission could replace it.
  if (st.st_uid != ::geteuid() || (st.st_mode & 022) != 0)
    return absl::PermissionDeniedError(fmt::format(
        "the state directory {} must belong to this user, and no other user may write to it (chmod 700)", path));
  return fd;
}

// The export's own number comes from the root's inode and birth time, because it must stay the same when devices are
// numbered anew. A change of this function makes every handle stale that was ever given out.
std::uint64_t export_id_of(const FileKey& root) {
  std::uint64_t id = root.ino * 0x9e3779b97f4a7c15u ^ static_cast<std::uint64_t>(root.btime_ns);
  return (id ^ id >> 29) * 0xbf58476d1ce4e5b9u;
}

// Each use has a key of its own, so that the values that clients see of one use say nothing about the other.
SipHashKey cookie_key_of(const HandleKey& key) {
  SipHashKey from;
  std::memcpy(&from.k0, key.data(), sizeof from.k0);
  std::memcpy(&from.k1, key.data() + sizeof from.k0, sizeof from.k1);
  return {.k0 = siphash(from, "weft cookies 0"), .k1 = siphash(from, "weft cookies 1")};
}

bool is_same_inode(const FileStat& a, const FileStat& b) {
  return a.dev == b.dev && a.ino == b.ino;
}

// Whether the error means that a path does not lead to the file any more, rather than that something failed on the way.
bool is_miss(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV || error == ENAMETOOLONG;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tree>> Tree::open(const TreeConfig& config) {
  std::unique_ptr<Tree> tree(new Tree);
  // The root itself may be named by a symbolic link: that is the operator's choice, not a client's.
  Fd root(::open(config.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return absl::NotFoundError(fmt::format("cannot export {}: {}", config.directory, std::strerror(errno)));
  Outcome<FileStat> st = stat_fd(root.get());
  if (!st)
    return absl::UnavailableError(
        fmt::format("cannot export {}: {}", config.directory, std::strerror(st.error().value)));
  Outcome<Fd> probe = open_path_beneath(root.get(), {});
  if (!probe)
    return absl::UnavailableError(
        fmt::format("cannot export {}: {}", config.directory, openat2_fault(probe.error().value)));
  Outcome<Fd> proc = reopen(root.get(), O_RDONLY | O_DIRECTORY);
  if (!proc)
    return absl::UnavailableError(fmt::format("cannot read {}: {} (/proc must be mounted, and the directory readable)",
                                              config.directory, std::strerror(proc.error().value)));
  char real[PATH_MAX];
  tree->real_path_ = ::realpath(config.directory.c_str(), real) != nullptr ? real : config.directory;
  tree->root_dev_ = st->dev;
  tree->cross_mounts_ = config.cross_mounts;
  tree->on_overlay_ = lies_on_overlay(root.get());
  tree->root_ = Node{.fd = std::make_shared<const Fd>(std::move(root)), .key = st->key(st->dev), .stat = st.value()};
  // The first change copies the directory to the upper layer and gives it a new birth time. Its handle must outlive
  // that.
  if (tree->on_overlay_) tree->root_.key.btime_ns = 0;
  tree->max_search_entries_ = config.max_search_entries;
  tree->on_search_ = config.on_search;
  tree->on_tree_search_ = config.on_tree_search;

  absl::StatusOr<Fd> state = open_state_dir(config.state_dir);
  if (!state.ok()) return state.status();
  Outcome<FileStat> state_stat = stat_fd(state->get());
  if (!state_stat)
    return absl::UnavailableError(fmt::format("cannot read the attributes of the state directory {}: {}",
                                              config.state_dir, std::strerror(state_stat.error().value)));
  if (is_same_inode(state_stat.value(), st.value()))
    return absl::InvalidArgumentError(
        fmt::format("{} is the state directory, which holds the key of all handles: export another directory, or name "
                    "another one with --state-dir",
                    config.directory));
  tree->state_dir_stat_ = state_stat.value();
  absl::StatusOr<HandleKey> key = load_handle_key(state->get(), config.state_dir);
  if (!key.ok()) return key.status();
  std::uint64_t export_id = export_id_of(tree->root_.key);
  absl::StatusOr<std::unique_ptr<HandleCodec>> codec = HandleCodec::create(*key, export_id);
  if (!codec.ok()) return codec.status();
  tree->codec_ = std::move(*codec);
  tree->cookie_key_ = cookie_key_of(*key);
  tree->export_id_ = export_id;
  absl::StatusOr<std::unique_ptr<IndexLog>> log =
      IndexLog::open(state->get(), fmt::format("index-{:016x}", export_id), config.state_dir);
  if (!log.ok()) return log.status();
  tree->index_ = std::make_unique<PathIndex>(tree->root_.key, config.max_indexed_files, std::move(*log));
  tree->state_dir_ = std::move(*state);
  return tree;
}

FileKey Tree::key_of(const FileStat& st) const {
  const FileKey key = st.key(root_dev_);
  return key.has_inode_of(root_.key) ? root_.key : key;
}

SearchScope Tree::scope() const {
  return {.root_fd = root_.path_fd(),
          .root = root_.key,
          .root_dev = root_dev_,
          .cross_mounts = cross_mounts_,
          .max_entries = max_search_entries_};
}

// `path` has num_names names.
Outcome<Node> Tree::node_at(const Node& dir, std::string_view path, std::size_t num_names, bool cached) const {
  Outcome<Fd> fd = open_path_beneath(dir.path_fd(), path, {.cached = cached, .cross_mounts = cross_mounts_});
  if (!fd) return fd.error();
  Outcome<FileStat> st = stat_fd(fd->get());
  if (!st) return st.error();
  // A state directory within the export (when a home directory is served, say) stays the server's own. The inode
  // identifies it: on overlayfs a birth time changes.
  if (is_same_inode(st.value(), state_dir_stat_)) return Errno{EACCES};
  return Node{.fd = std::make_shared<const Fd>(std::move(fd.value())),
              .key = key_of(st.value()),
              .stat = st.value(),
              .depth = dir.depth + num_names};
}

// Whether `found`, the file at the place where the file of `key` was last seen, is that file. If so, it gets that key.
// overlayfs keeps the inode number of a file that it copies to its upper layer, and gives it another birth time.
bool Tree::settle(Node& found, const FileKey& key) const {
  if (found.key == key) return true;
  if (!found.key.has_inode_of(key) || !lies_on_overlay(found.path_fd())) return false;
  found.key = key;
  return true;
}

Outcome<Node> Tree::resolve(const nfs3::NfsFh3& handle) {
  Outcome<FileKey> key = codec_->parse(handle);
  if (!key) return key.error();
  return resolve(key.value());
}

Outcome<Node> Tree::resolve(const FileKey& key) {
  Outcome<Node> node = find(key);
  if (node || node.error() != Errno{ENOENT}) return node;
  return search(key);
}

Outcome<Node> Tree::find(const FileKey& key) {
  if (key == root_.key) {
    Outcome<FileStat> st = stat_fd(root_.path_fd());
    if (!st) return st.error();
    if (st->nlink == 0) return Errno{ESTALE};
    return Node{.fd = root_.fd, .key = key, .stat = st.value()};
  }
  Outcome<Node> node = resolve_by_index(key);
  if (node || node.error() != Errno{ENOENT}) return node;
  if (is_known_gone(key)) return Errno{ESTALE};
  return Errno{ENOENT};
}

std::optional<Node> Tree::resolve_now(const FileKey& key) {
  const std::optional<PathIndex::Candidate> at = index_->path_now(key);
  if (!at) return std::nullopt;
  Outcome<Node> node = node_at(root_, at->path, at->depth, true);
  if (!node || !settle(node.value(), key)) return std::nullopt;
  return std::move(node.value());
}

Outcome<Node> Tree::resolve_by_index(const FileKey& key) {
  bool is_first = true, too_deep = false, is_covered = false;
  for (const PathIndex::Candidate& candidate : index_->paths(key, &too_deep)) {
    Outcome<Node> node = node_at(root_, candidate.path, candidate.depth);
    if (node && settle(node.value(), key)) {
      if (!is_first) index_->learn(key, candidate.name.parent, candidate.name.name);
      return node;
    }
    if (!node && !is_miss(node.error().value)) return node.error();
    is_covered = is_covered || (!node && node.error() == Errno{EXDEV});
    is_first = false;
  }
  // The file is out of reach beneath a mount or too deep, and a search does not go there either.
  if (too_deep || (is_covered && !cross_mounts_)) return Errno{ESTALE};
  return Errno{ENOENT};
}

// The right to search; a thread waits for it for a moment. Without it, the next search is for its file, too.
class Tree::SearchTurn {
 public:
  SearchTurn(Tree& tree, const FileKey& key) : tree_(tree) {
    std::unique_lock lock(tree_.search_mutex_);
    tree_.ended_.settle(tree_.wishes_);
    is_mine_ = tree_.search_ended_.wait_for(lock, kSearchWait, [this] { return !tree_.is_searching_; });
    if (is_mine_) {
      tree_.is_searching_ = true;
    } else {
      tree_.wishes_.add(key, ActingFor::now());
    }
  }
  ~SearchTurn() {
    if (!is_mine_) return;
    {
      std::lock_guard lock(tree_.search_mutex_);
      tree_.is_searching_ = false;
    }
    tree_.search_ended_.notify_one();
  }
  SearchTurn(const SearchTurn&) = delete;
  SearchTurn& operator=(const SearchTurn&) = delete;
  bool is_mine() const { return is_mine_; }

 private:
  Tree& tree_;
  bool is_mine_ = false;
};

Outcome<Node> Tree::search(const FileKey& key) {
  if (on_search_) on_search_();
  // The search begins in the directory where the file was: most renamed files stay in their directory.
  for (const PathIndex::Name& name : index_->names(key)) {
    Outcome<Node> dir = name.parent == root_.key ? Outcome<Node>(root_) : resolve_by_index(name.parent);
    if (!dir || dir->depth >= PathIndex::kMaxDepth) continue;
    std::string found = search_dir(scope(), dir->path_fd(), key);
    if (found.empty()) continue;
    Outcome<Node> node = node_at(dir.value(), found, 1);
    if (!node || node->key != key) continue;
    index_->learn(key, name.parent, found);
    return node;
  }
  // One search runs at a time, so that clients with stale handles cannot keep every worker reading directories.
  SearchTurn turn(*this, key);
  if (!turn.is_mine()) return Errno{EAGAIN};
  if (Outcome<Node> node = resolve_by_index(key); node) return node;
  if (is_known_gone(key)) return Errno{ESTALE};
  num_searches_.fetch_add(1, std::memory_order_relaxed);
  switch (search_for_all(key)) {
    case Found::kUnfinished:
      spdlog::warn("serve: a file could not be found within {} directory entries", max_search_entries_);
      return Errno{EAGAIN};
    case Found::kGone: return Errno{ESTALE};
    case Found::kFound: break;
  }
  Outcome<Node> node = resolve_by_index(key);
  // The file moved again: the client asks again.
  if (!node) return Errno{EAGAIN};
  return node;
}

Found Tree::search_for_all(const FileKey& key) {
  if (on_tree_search_) on_tree_search_();
  std::vector<FileKey> wanted;
  {
    std::lock_guard lock(search_mutex_);
    wanted = wishes_.take();
  }
  wanted.insert(wanted.begin(), key);
  const auto learn = [this](const FileKey&, const SearchResult& result) {
    for (const SearchResult::Step& step : result.steps) index_->learn(step.file, step.name.parent, step.name.name);
  };
  const std::vector<Found> found = search_tree(scope(), wanted, learn);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (found[i] == Found::kGone) on_gone(wanted[i]);
  }
  return found.front();
}

int Tree::check_new(const Node& dir, std::string_view name) {
  if (int error = check_name(name); error != 0) return error;
  if (!dir.stat.is_dir()) return ENOTDIR;
  return dir.depth >= PathIndex::kMaxDepth ? ENAMETOOLONG : 0;
}

Outcome<Node> Tree::peek(const Node& dir, std::string_view name) const {
  if (int error = check_name(name); error != 0) return Errno{error};
  if (is_dot(name) || is_dot_dot(name)) return Errno{EINVAL};
  if (int error = check_new(dir, name); error != 0) return Errno{error};
  Outcome<Node> node = node_at(dir, name, 1);
  // EXDEV would say that an operation crosses filesystems. Here the other filesystem is out of bounds.
  if (!node && node.error() == Errno{EXDEV}) return Errno{EACCES};
  if (!node || !(on_overlay_ || cross_mounts_)) return node;
  // overlayfs may have copied the file up since it was first seen under this name. The file keeps its first handle.
  if (const std::optional<FileKey> first = index_->twin(node->key, dir.key, name)) settle(node.value(), *first);
  return node;
}

Outcome<Node> Tree::peek_made(const Node& dir, std::string_view name) {
  Outcome<Node> node = node_at(dir, name, 1);
  if (!node || !(on_overlay_ || cross_mounts_)) return node;
  for (const FileKey& former : index_->twins(node->key)) on_gone(former);
  return node;
}

Outcome<Node> Tree::lookup(const Node& dir, std::string_view name) {
  if (!dir.stat.is_dir()) return Errno{ENOTDIR};
  if (is_dot(name)) return dir;
  if (is_dot_dot(name)) return parent_of(dir);
  Outcome<Node> node = peek(dir, name);
  if (node) on_seen(node->key, dir.key, name);
  return node;
}

Outcome<Node> Tree::parent_of(const Node& dir) {
  if (dir.key == root_.key) return resolve(root_.key);
  // `dir` was resolved a moment ago, so the first name says where it lies.
  std::vector<PathIndex::Name> names = index_->names(dir.key);
  if (names.empty()) return Errno{EAGAIN};
  return resolve(names.front().parent);
}

Outcome<Node> Tree::open_path(std::string_view path) {
  Outcome<Node> at = resolve(root_.key);
  while (at && !path.empty()) {
    std::size_t cut = path.find('/');
    std::string_view name = path.substr(0, cut);
    path.remove_prefix(cut == path.npos ? path.size() : cut + 1);
    if (name.empty()) continue;
    at = lookup(at.value(), name);
  }
  return at;
}

void Tree::on_seen(const FileKey& file, const FileKey& parent, std::string_view name) {
  index_->learn(file, parent, name);
  std::lock_guard lock(gone_mutex_);
  if (auto it = gone_.find(file); it != gone_.end()) {
    gone_order_.erase(it->second);
    gone_.erase(it);
  }
}

void Tree::on_name_gone(const FileKey& file, const FileKey& parent, std::string_view name) {
  index_->forget_name(file, parent, name);
}

void Tree::on_gone(const FileKey& file) {
  index_->forget(file);
  std::lock_guard lock(gone_mutex_);
  auto [it, is_new] = gone_.try_emplace(file);
  if (!is_new) return;
  gone_order_.push_front(file);
  it->second = gone_order_.begin();
  if (gone_.size() <= kMaxGone) return;
  gone_.erase(gone_order_.back());
  gone_order_.pop_back();
}

bool Tree::is_known_gone(const FileKey& key) {
  std::lock_guard lock(gone_mutex_);
  return gone_.contains(key);
}

}  // namespace weft::serve
