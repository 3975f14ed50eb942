#include "apps/serve/export/tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "apps/serve/export/index_log.h"
#include "apps/serve/export/search.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace weft::serve {
namespace {

constexpr std::size_t kMaxGone = 65536;
constexpr std::chrono::milliseconds kSearchWait{50};

absl::StatusOr<Fd> open_state_dir(const std::string& path) {
  // Its parents too: ~/.local/state is often missing.
  for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), 0700);
  ::mkdir(path.c_str(), 0700);
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat st {};
  if (!fd || ::fstat(fd.get(), &st) != 0)
    return absl::PermissionDeniedError(fmt::format(
        "cannot open the state directory {}: {}; name another with --state-dir", path, std::strerror(errno)));
  // Whoever can write there can swap the key under which handles are signed.
  if (st.st_uid != ::geteuid() || (st.st_mode & 022) != 0)
    return absl::PermissionDeniedError(fmt::format(
        "the state directory {} must belong to this user and be writable by nobody else (chmod 700)", path));
  return fd;
}

// The export's own number: the root's inode and birth time, for it stays what it is when devices are numbered anew.
// Changing this function makes every handle that was ever given out stale.
std::uint64_t export_id_of(const FileKey& root) {
  std::uint64_t id = root.ino * 0x9e3779b97f4a7c15u ^ static_cast<std::uint64_t>(root.btime_ns);
  return (id ^ id >> 29) * 0xbf58476d1ce4e5b9u;
}

// Says that a path does not lead to the file any more, rather than that something is wrong on the way.
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
  tree->root_ = Node{.fd = std::make_shared<const Fd>(std::move(root)), .key = st->key(st->dev), .stat = st.value()};
  tree->max_search_entries_ = config.max_search_entries;

  absl::StatusOr<Fd> state = open_state_dir(config.state_dir);
  if (!state.ok()) return state.status();
  Outcome<FileStat> state_stat = stat_fd(state->get());
  if (state_stat) tree->state_dir_key_ = state_stat->key(tree->root_dev_);
  absl::StatusOr<HandleKey> key = load_handle_key(state->get(), config.state_dir);
  if (!key.ok()) return key.status();
  std::uint64_t export_id = export_id_of(tree->root_.key);
  absl::StatusOr<std::unique_ptr<HandleCodec>> codec = HandleCodec::create(*key, export_id);
  if (!codec.ok()) return codec.status();
  tree->codec_ = std::move(*codec);
  tree->export_id_ = export_id;
  absl::StatusOr<std::unique_ptr<IndexLog>> log =
      IndexLog::open(state->get(), fmt::format("index-{:016x}", export_id), config.state_dir);
  if (!log.ok()) return log.status();
  tree->index_ = std::make_unique<PathIndex>(tree->root_.key, config.max_indexed_files, std::move(*log));
  return tree;
}

Outcome<Node> Tree::node_at(int dir_fd, std::string_view path, Walk walk) const {
  Outcome<Fd> fd = open_path_beneath(dir_fd, path, walk);
  if (!fd) return fd.error();
  Outcome<FileStat> st = stat_fd(fd->get());
  if (!st) return st.error();
  // A state directory within the export (a home directory is served, say) stays the server's own.
  if (st->key(root_dev_) == state_dir_key_) return Errno{EACCES};
  return Node{.fd = std::make_shared<const Fd>(std::move(fd.value())), .key = st->key(root_dev_), .stat = st.value()};
}

Outcome<Node> Tree::resolve(const nfs3::NfsFh3& handle) {
  Outcome<FileKey> key = codec_->parse(handle);
  if (!key) return key.error();
  return resolve(key.value());
}

Outcome<Node> Tree::resolve(const FileKey& key) {
  if (key == root_.key) {
    Outcome<FileStat> st = stat_fd(root_.path_fd());
    if (!st) return st.error();
    if (st->nlink == 0) return Errno{ESTALE};
    return Node{.fd = root_.fd, .key = key, .stat = st.value()};
  }
  Outcome<Node> node = resolve_by_index(key);
  if (node || node.error() != Errno{ENOENT}) return node;
  if (is_known_gone(key)) return Errno{ESTALE};
  return search(key);
}

std::optional<Node> Tree::resolve_now(const FileKey& key) {
  const std::optional<std::string> path = index_->path_now(key);
  if (!path) return std::nullopt;
  Outcome<Node> node = node_at(root_.path_fd(), *path, Walk::kCached);
  if (!node || node->key != key) return std::nullopt;
  return std::move(node.value());
}

Outcome<Node> Tree::resolve_by_index(const FileKey& key) {
  bool is_first = true;
  for (const PathIndex::Candidate& candidate : index_->paths(key)) {
    Outcome<Node> node = node_at(root_.path_fd(), candidate.path);
    if (node && node->key == key) {
      if (!is_first) index_->learn(key, candidate.name.parent, candidate.name.name);
      return node;
    }
    if (!node && !is_miss(node.error().value)) return node.error();
    is_first = false;
  }
  return Errno{ENOENT};
}

// The right to search, waited for a moment.
class Tree::SearchTurn {
 public:
  explicit SearchTurn(Tree& tree) : tree_(tree) {
    std::unique_lock lock(tree_.search_mutex_);
    is_mine_ = tree_.search_ended_.wait_for(lock, kSearchWait, [this] { return !tree_.is_searching_; });
    if (is_mine_) tree_.is_searching_ = true;
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
  // First where it was: most files that are renamed stay in their directory.
  for (const PathIndex::Name& name : index_->names(key)) {
    std::string_view parent_path;
    std::vector<PathIndex::Candidate> parents = index_->paths(name.parent);
    if (name.parent != root_.key) {
      if (parents.empty()) continue;
      parent_path = parents.front().path;
    }
    Outcome<Node> dir = node_at(root_.path_fd(), parent_path);
    if (!dir || dir->key != name.parent) continue;
    std::string found = search_dir(dir->path_fd(), key, root_dev_);
    if (found.empty()) continue;
    Outcome<Node> node = node_at(dir->path_fd(), found);
    if (!node || node->key != key) continue;
    index_->learn(key, name.parent, found);
    return node;
  }
  // One search at a time, so that clients with stale handles cannot keep every worker reading directories. Where
  // several ask for one file, the first finds it for all.
  SearchTurn turn(*this);
  if (!turn.is_mine()) return Errno{EAGAIN};
  if (Outcome<Node> node = resolve_by_index(key); node) return node;
  if (is_known_gone(key)) return Errno{ESTALE};
  num_searches_.fetch_add(1, std::memory_order_relaxed);
  SearchResult result = search_tree(root_.path_fd(), root_.key, root_dev_, key, max_search_entries_);
  switch (result.found) {
    case Found::kUnfinished:
      spdlog::warn("serve: a file could not be found within {} directory entries", max_search_entries_);
      return Errno{EAGAIN};
    case Found::kGone: on_gone(key); return Errno{ESTALE};
    case Found::kFound: break;
  }
  for (const SearchResult::Step& step : result.steps) index_->learn(step.file, step.name.parent, step.name.name);
  Outcome<Node> node = node_at(root_.path_fd(), result.path);
  // It moved again: the client asks again.
  if (!node || node->key != key) return Errno{EAGAIN};
  return node;
}

Outcome<Node> Tree::peek(const Node& dir, std::string_view name) const {
  if (int error = check_name(name); error != 0) return Errno{error};
  if (is_dot(name) || is_dot_dot(name)) return Errno{EINVAL};
  if (!dir.stat.is_dir()) return Errno{ENOTDIR};
  return node_at(dir.path_fd(), name);
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
  // `dir` was resolved a moment ago, so the first name is where it lies.
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
