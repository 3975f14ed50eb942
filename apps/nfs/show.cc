// `weft nfs ls` and `weft nfs stat`.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "apps/common/printable.h"
#include "apps/nfs/runner.h"
#include "apps/nfs/show.h"
#include "apps/nfs/tree.h"
#include "apps/nfs/tree_work.h"

namespace weft::nfs {

using nfs3::Ftype3;

const char* type_name(Ftype3 type) {
  switch (type) {
    case Ftype3::kReg: return "file";
    case Ftype3::kDir: return "directory";
    case Ftype3::kBlk: return "block_device";
    case Ftype3::kChr: return "character_device";
    case Ftype3::kLnk: return "symlink";
    case Ftype3::kSock: return "socket";
    case Ftype3::kFifo: return "fifo";
  }
  return "unknown";
}

std::string mode_text(const nfs3::Fattr3& attributes) {
  constexpr std::string_view kTypes = "?-dbclsp";
  std::string text(1, kTypes[static_cast<std::size_t>(attributes.type)]);
  constexpr std::string_view kBits = "rwxrwxrwx";
  for (std::size_t i = 0; i < kBits.size(); ++i) {
    text += (attributes.mode >> (kBits.size() - 1 - i) & 1) != 0 ? kBits[i] : '-';
  }
  // Set-uid, set-gid and sticky take the place of the x of user, group and others.
  constexpr struct {
    std::uint32_t bit;
    std::size_t place;
    char with_x, without_x;
  } kSpecial[] = {{04000, 3, 's', 'S'}, {02000, 6, 's', 'S'}, {01000, 9, 't', 'T'}};
  for (const auto& special : kSpecial) {
    if ((attributes.mode & special.bit) == 0) continue;
    text[special.place] = text[special.place] == 'x' ? special.with_x : special.without_x;
  }
  return text;
}

std::string time_text(const nfs3::Nfstime3& time) {
  const auto seconds = static_cast<std::time_t>(time.seconds);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  const std::size_t len = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return std::string(text, len);
}

namespace {

std::string for_people(const std::string& name) {
  return isatty(STDOUT_FILENO) == 1 ? apps::printable(name) : name;
}

JsonLine json_of(const Url& url, const std::string& name, const nfs3::Fattr3& attributes) {
  JsonLine line;
  line.add("name", name)
      .add("url", url.str())
      .add("type", type_name(attributes.type))
      .add("mode", fmt::format("{:04o}", attributes.mode & 07777))
      .add("nlink", std::uint64_t{attributes.nlink})
      .add("uid", std::uint64_t{attributes.uid})
      .add("gid", std::uint64_t{attributes.gid})
      .add("octets", attributes.size)
      .add("octets_used", attributes.used)
      .add_id("fileid", attributes.fileid)
      .add("mtime", time_text(attributes.mtime));
  return line;
}

// Ls lists the operands of the command line. It sorts names, directory by directory, as far as memory allows. --json
// and -U print them as the server lists them, page by page.
class Ls {
 public:
  Ls(Runner& runner, Session& session) : runner_(runner), options_(runner.options()), flow_(session) {}

  absl::Status run(const Url& url) {
    auto node = resolve(flow_.session(), url, options_.long_format ? FollowLast::kNo : FollowLast::kYes);
    if (!node.ok()) return node.status();
    absl::Status result;
    flow_.run(root(url, *node, result));
    if (!reader_left_) return result;
    runner_.end_with_reader();
    return absl::OkStatus();
  }

 private:
  Task<void> root(const Url& url, const Node& node, absl::Status& result) {
    if (node.is_dir()) {
      result = co_await directory(url, node.fh, "", 0);
    } else {
      result = co_await show(url, url.basename(), node);
    }
  }

  // Held counts the bytes of one directory toward the limit for all directories together.
  class Held {
   public:
    explicit Held(std::size_t& all) : all_(all) {}
    ~Held() { all_ -= mine_; }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    void add(std::size_t octets) {
      mine_ += octets;
      all_ += octets;
    }
    void clear() { all_ -= std::exchange(mine_, 0); }

   private:
    std::size_t& all_;
    std::size_t mine_ = 0;
  };

  // `prefix` goes before the names: the directory's path relative to the operand.
  Task<absl::Status> directory(Url url, nfs3::NfsFh3 fh, std::string prefix, int depth) {
    if (depth == kMaxDepth) co_return absl::FailedPreconditionError(url.str() + ": directories nested too deeply");
    Listing listing(flow_, fh, url);
    bool is_sorted = !options_.json && !options_.unsorted;
    std::vector<DirEntry> entries;
    Held held(held_);
    while (!listing.at_end()) {
      const std::size_t before = entries.size();
      if (absl::Status status = co_await listing.next(entries); !status.ok()) co_return status;
      for (std::size_t i = before; i < entries.size(); ++i) held.add(octets_held(entries[i]));
      const bool is_too_much = held_ > options_.max_sorted;
      if (is_sorted && !listing.at_end() && !is_too_much) continue;
      if (is_sorted) {
        std::sort(entries.begin(), entries.end(), [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
      }
      if (is_sorted && !listing.at_end()) {
        runner_.warn(
            fmt::format("{}: more names than fit the {} MiB for sorting; the rest follows as the server lists it",
                        url.str(), options_.max_sorted >> 20));
        is_sorted = false;
      }
      if (absl::Status status = co_await show_all(url, entries, prefix, depth); !status.ok()) co_return status;
      entries.clear();
      held.clear();
    }
    co_return absl::OkStatus();
  }

  Task<absl::Status> show_all(const Url& url, const std::vector<DirEntry>& entries, const std::string& prefix,
                              int depth) {
    for (const DirEntry& entry : entries) {
      if (!options_.all && entry.name.starts_with('.')) continue;
      if (!entry.status.ok()) {
        show_name_only(entry, prefix);
        continue;
      }
      const Url entry_url = url.child(entry.name);
      absl::Status status = co_await show(entry_url, prefix + entry.name, entry.node);
      if (!status.ok()) co_return status;
      if (!options_.recursive || !entry.node.is_dir()) continue;
      status = co_await directory(entry_url, entry.node.fh, prefix + entry.name + "/", depth + 1);
      // A directory that may not be read does not stop the listing of the others.
      if (!status.ok() && (reader_left_ || !runner_.report(status))) co_return status;
    }
    // A listing without an end must stop when its reader has left.
    if (std::fflush(stdout) == 0) co_return absl::OkStatus();
    reader_left_ = errno == EPIPE;
    co_return absl::CancelledError(std::string("cannot write to standard output: ") + std::strerror(errno));
  }

  // A plain listing needs only the name. If more was asked for, the missing part is reported.
  void show_name_only(const DirEntry& entry, const std::string& prefix) {
    const std::string name = for_people(prefix + entry.name);
    if (options_.long_format || options_.recursive || options_.json) runner_.report(entry.status);
    if (options_.json) return;
    runner_.print(options_.long_format
                      ? fmt::format("{:?<10} {:>3} {:>6} {:>6} {:>12} {:20} {}", "", "?", "?", "?", "?", "?", name)
                      : name);
  }

  Task<absl::Status> show(Url url, std::string name, const Node& node) {
    std::string target;
    if (node.is_symlink() && (options_.long_format || options_.json)) {
      auto text = co_await link_text(flow_, node.fh, url);
      if (!text.ok()) co_return text.status();
      target = std::move(*text);
    }
    const nfs3::Fattr3& attributes = node.attributes;
    if (options_.json) {
      JsonLine line = json_of(url, name, attributes);
      if (node.is_symlink()) line.add("target", target);
      runner_.print(line.str());
    } else if (options_.long_format) {
      runner_.print(fmt::format("{} {:>3} {:>6} {:>6} {:>12} {} {}{}", mode_text(attributes), attributes.nlink,
                                attributes.uid, attributes.gid, attributes.size, time_text(attributes.mtime),
                                for_people(name), node.is_symlink() ? " -> " + for_people(target) : ""));
    } else {
      runner_.print(for_people(name));
    }
    co_return absl::OkStatus();
  }

  Runner& runner_;
  const NfsOptions& options_;
  Flow flow_;
  std::size_t held_ = 0;
  bool reader_left_ = false;
};

absl::Status ls_one(Runner& runner, const Url& url) {
  auto session = runner.session(url);
  if (!session.ok()) return session.status();
  return Ls(runner, **session).run(url);
}

absl::Status stat_one(Runner& runner, const Url& url) {
  auto session = runner.session(url);
  if (!session.ok()) return session.status();
  auto node = resolve(**session, url, runner.options().dereference ? FollowLast::kYes : FollowLast::kNo);
  if (!node.ok()) return node.status();
  std::string target;
  if (node->is_symlink()) {
    auto text = link_text(**session, node->fh, url);
    if (!text.ok()) return text.status();
    target = std::move(*text);
  }
  const nfs3::Fattr3& a = node->attributes;
  if (runner.options().json) {
    JsonLine line = json_of(url, url.basename(), a);
    line.add_id("fsid", a.fsid).add("atime", time_text(a.atime)).add("ctime", time_text(a.ctime));
    if (node->is_symlink()) line.add("target", target);
    runner.print(line.str());
    return absl::OkStatus();
  }
  std::string text = fmt::format("  name: {}\n  type: {}\n", for_people(url.str()), type_name(a.type));
  if (node->is_symlink()) text += fmt::format("target: {}\n", for_people(target));
  text += fmt::format("  size: {} bytes, {} used\n  mode: {:04o} {}\n links: {}\n owner: uid {} gid {}\n", a.size,
                      a.used, a.mode & 07777, mode_text(a), a.nlink, a.uid, a.gid);
  if (a.type == Ftype3::kBlk || a.type == Ftype3::kChr) {
    text += fmt::format("device: {}, {}\n", a.rdev.specdata1, a.rdev.specdata2);
  }
  text += fmt::format("fileid: {} of file system {:#x}\n", a.fileid, a.fsid);
  text += fmt::format("access: {}\nmodify: {}\nchange: {}", time_text(a.atime), time_text(a.mtime), time_text(a.ctime));
  runner.print(text);
  return absl::OkStatus();
}

}  // namespace

void run_ls(Runner& runner) {
  auto urls = remote_names(runner.options().names);
  if (!urls.ok()) return void(runner.report(urls.status()));
  for (const Url& url : *urls) {
    if (urls->size() > 1 && !runner.options().json) runner.print(url.str() + ":");
    if (!runner.report(ls_one(runner, url))) return;
  }
}

void run_stat(Runner& runner) {
  auto urls = remote_names(runner.options().names);
  if (!urls.ok()) return void(runner.report(urls.status()));
  for (const Url& url : *urls) {
    if (!runner.report(stat_one(runner, url))) return;
  }
}

}  // namespace weft::nfs
