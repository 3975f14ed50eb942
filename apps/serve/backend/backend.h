#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/nfs3/types.h"
#include "apps/serve/backend/disk_calls.h"
#include "apps/serve/backend/open_files.h"
#include "apps/serve/backend/shared_syncs.h"
#include "apps/serve/backend/stripe_locks.h"
#include "apps/serve/backend/write_promise.h"
#include "apps/serve/export/dir_listing.h"
#include "apps/serve/export/tree.h"
#include "verbs-shim/api/log.h"
#include "verbs-shim/api/log_budget.h"

namespace weft::serve {

struct BackendConfig {
  bool read_write = false;
  std::uint32_t rtmax = 1 << 20;  // octets of one READ
  std::uint32_t wtmax = 1 << 20;  // octets of one WRITE
  std::size_t max_open_files = 256;
  // Whether clients may set the set-user-ID and set-group-ID bits of files, and make devices.
  bool set_id_files = false;
  bool devices = false;
  // RFC 1813 wants names and attributes on stable storage before the reply. Only tests turn this off.
  bool sync_metadata = true;
  // Receives a line for each file that gets a mode without the set-ID bits that a client asked for. Any thread calls
  // it.
  verbs::Log log = {};
};

// Backend is NFS version 3 (RFC 1813 section 3.3) on a directory: each procedure is a function from arguments to
// results. Every function runs as the process's own user, and blocks on the disk unless its comment says otherwise. Any
// thread.
class Backend {
 public:
  // The most descriptors that one procedure has open at once without a place among the open files. Of those in the
  // normal lane (call_work.h) WRITE has most: its file as a Node, and what opening costs. LOOKUP of ".." has a Node and
  // a resolve, READDIRPLUS has three.
  static constexpr std::size_t kDescriptorsOfCall =
      1 + std::max(OpenFiles::kDescriptorsOfOpening, Tree::kDescriptorsOfResolve);
  // Of those in the sync lane RENAME has most: two directories and two files as Nodes, and the file that it replaces
  // closes. CREATE of a file that is there has a Node more than SETATTR, which has as many as WRITE.
  static constexpr std::size_t kDescriptorsOfChange =
      std::max({4 + OpenFiles::kDescriptorsOfErase, 1 + kDescriptorsOfCall, OpenFiles::kDescriptorsOfSweep});
  // read_now and write_now: the open file, which may lose its place meanwhile, and its path.
  static constexpr std::size_t kDescriptorsOfCallNow = 1 + Tree::kDescriptorsOfFind;

  Backend(Tree& tree, const BackendConfig& config, DiskCalls calls = {});

  const BackendConfig& config() const { return config_; }

  nfs3::GetattrRes getattr(const nfs3::FhArgs& args);
  nfs3::WccRes setattr(const nfs3::SetattrArgs& args);
  nfs3::AccessRes access(const nfs3::AccessArgs& args);
  nfs3::FsstatRes fsstat(const nfs3::FhArgs& args);
  nfs3::FsinfoRes fsinfo(const nfs3::FhArgs& args);
  nfs3::PathconfRes pathconf(const nfs3::FhArgs& args);

  nfs3::LookupRes lookup(const nfs3::DiropArgs& args);
  nfs3::NewObjectRes create(const nfs3::CreateArgs& args);
  nfs3::NewObjectRes mkdir(const nfs3::MkdirArgs& args);
  // `path` is a parameter of its own: its octets may stand in the arguments or may have come by Read chunk.
  nfs3::NewObjectRes symlink(const nfs3::SymlinkArgs& args, ConstBytes path);
  nfs3::NewObjectRes mknod(const nfs3::MknodArgs& args);
  nfs3::WccRes remove(const nfs3::DiropArgs& args);
  nfs3::WccRes rmdir(const nfs3::DiropArgs& args);
  nfs3::RenameRes rename(const nfs3::RenameArgs& args);
  nfs3::LinkRes link(const nfs3::LinkArgs& args);

  nfs3::ReaddirRes readdir(const nfs3::ReaddirArgs& args);
  nfs3::ReaddirplusRes readdirplus(const nfs3::ReaddirplusArgs& args);

  // read puts at most into.size() octets into `into`. res.data stays empty; res.count is the number of octets. readlink
  // does the same with the target: its `into` holds at least kMaxPath octets.
  nfs3::ReadRes read(const nfs3::ReadArgs& args, MutBytes into);
  nfs3::ReadlinkRes readlink(const nfs3::FhArgs& args, MutBytes into);
  nfs3::WriteRes write(const nfs3::WriteArgs& args, ConstBytes data);
  nfs3::CommitRes commit(const nfs3::CommitArgs& args);

  // read_now and write_now are read and write for a thread that must not wait. They answer when the file is open,
  // memory holds the octets (or takes them, UNSTABLE), and no other thread is in the way. Otherwise they return
  // nothing, and the caller calls read or write; some octets may have reached `into` or the file already.
  std::optional<nfs3::ReadRes> read_now(const nfs3::ReadArgs& args, MutBytes into);
  std::optional<nfs3::WriteRes> write_now(const nfs3::WriteArgs& args, ConstBytes data);
  // Once a path was found to lead to an open file, read_now and write_now assume for this long that the file still lies
  // there. A file that is moved out of the export behind the server's back can be read and written for that long. A
  // file without a name is gone at once.
  static constexpr std::chrono::milliseconds kPathHolds{100};

  // sweep_open_files closes the files that lie idle (OpenFiles::sweep). The caller calls it once every kSweepInterval,
  // one call at a time, while any files are open.
  void sweep_open_files() { files_.sweep(); }
  std::size_t num_open_files() const { return files_.size(); }
  // sync_evicted_files syncs and closes the files that lost their place (OpenFiles::sync_evicted). The caller calls it
  // in a few threads, soon after files begin to wait for it.
  void sync_evicted_files() { files_.sync_evicted(); }
  std::size_t num_files_waiting() const { return files_.num_waiting(); }
  static constexpr std::chrono::seconds kSweepInterval{1};

  // The client has ended, and no thread acts for it any more: what it left in shared tables becomes its address's.
  // Waits for no thread.
  void on_client_end(const DiskClient& client) {
    files_.on_client_end(client);
    tree_.on_client_end(client);
  }
  std::size_t num_file_holders() const { return files_.num_holders(); }

  const SharedSyncs& syncs() const { return syncs_; }

 private:
  using Held = StripeLocks::Held;

  // Found holds the objects that a request changes, locked against other changes through this server, so that wcc_data
  // frames this change alone. If one object cannot be had, no lock is held, and the object's outcome says why.
  struct Found {
    Held held;
    std::vector<Outcome<Node>> nodes;
  };
  // lock_found takes the locks of `files` and `others`, and finds `files`. It searches the tree for a file that moved,
  // but never while it holds a lock.
  Found lock_found(std::span<const FileKey> files, std::span<const FileKey> others = {});
  struct Locked {
    Held held;
    Node node;
  };
  Outcome<Locked> resolve_locked(const nfs3::NfsFh3& handle);
  // lock_names is lock_found for directories and for the files that `names` in them lead to: a change of a name also
  // changes its file's attributes. The nodes of the directories come first, then the nodes of the files. A name without
  // a file gives ENOENT.
  Found lock_names(std::span<const FileKey> dirs, std::span<const std::string* const> names);

  // The attributes of an open regular file that lies in the export; nothing if finding out would mean to wait.
  std::optional<FileStat> stat_now(const FileKey& key, OpenFile& file);

  nfs3::Fattr3 attr(const Node& node) const { return attr(node.key, node.stat); }
  nfs3::Fattr3 attr(const FileKey& key, const FileStat& st) const;
  nfs3::PostOpAttr post_attr(const Node& node) const;
  nfs3::WccData wcc(const Node& before) const;
  // The results of a READ, with the attributes that statx gave after it, and of a WRITE that was done.
  nfs3::ReadRes read_result(const FileKey& key, const FileStat& st, const nfs3::ReadArgs& args,
                            std::size_t count) const;
  nfs3::WriteRes write_result(const nfs3::WccData& wcc, const nfs3::WriteArgs& args, std::size_t count,
                              const nfs3::Verf& verf) const;

  // kAsAsked is for SETATTR. kAsFarAsAllowed is for a new object: it leaves an owner or group alone that the user may
  // not give.
  enum class Giving : std::uint8_t { kAsAsked, kAsFarAsAllowed };
  Outcome<int> apply(const Node& node, const nfs3::Sattr3& wanted, Giving owner = Giving::kAsAsked);
  Outcome<int> give(const Node& node, const nfs3::Sattr3& wanted, Giving owner);
  // allowed_mode: the bits of `wanted` that `node` may get. Files get set-ID bits only by option, or if they have them
  // now.
  mode_t allowed_mode(mode_t wanted, mode_t type, mode_t now = 0) const;
  // log_mode writes a line if `given` lacks set-ID bits of `wanted`.
  void log_mode(const Node& node, mode_t wanted, mode_t given);
  // drop_set_ids clears the set-ID bits of a file before its content or owner changes, as the kernel does for an
  // unprivileged writer. Returns 0 or an errno value.
  int drop_set_ids(const Node& node) const;
  Outcome<int> set_size(const Node& node, std::uint64_t size);
  // sync_metadata_of makes all earlier changes of the file or directory stable: 0 or an errno value. Changes that
  // several requests made at about the same time share one fsync(2). sync_now is that fsync(2). sync_new does both for
  // an object that was just made and for its directory.
  int sync_metadata_of(const Node& node);
  int sync_new(const Node& made, const Node& dir);
  int sync_now(const Node& node);

  // make_object is CREATE, MKDIR, SYMLINK and MKNOD. `maker` gets the locked directory, makes the name in it, and
  // returns the new file.
  using Maker = std::function<Outcome<Node>(const Node& dir)>;
  nfs3::NewObjectRes make_object(const nfs3::Diropargs3& where, const Maker& maker);
  // Gives a new file its attributes, or removes the file again.
  Outcome<Node> adopt(const Node& dir, const std::string& name, const nfs3::Sattr3& wanted, mode_t default_mode);
  // existing: the file that had the name already, if that is no error.
  Outcome<Node> create_file(const Node& dir, const nfs3::CreateArgs& args, std::optional<Node>& existing);
  Outcome<Node> use_existing(const Node& dir, const nfs3::CreateArgs& args);

  // Listing is one READDIR or READDIRPLUS under way, and the verifier of its cookies.
  struct Listing {
    std::unique_ptr<DirListing> entries;
    nfs3::Verf verf{};
  };
  Outcome<Listing> list(const Node& node, std::uint64_t cookie, const nfs3::Verf& verf,
                        const DirListing::Limits& limits) const;
  // list_into is the common part of READDIR and READDIRPLUS. `add` puts an entry into the Reply; false: the Reply is
  // full. limit: octets of the Reply. entry_cost: octets of an entry beside its name.
  template <typename Args, typename Res, typename Add>
  Res list_into(const Args& args, std::size_t limit, std::size_t entry_cost, const Add& add);

  nfs3::WccRes remove_name(const nfs3::Diropargs3& what, bool is_rmdir);
  // The caller calls on_name_lost when `file` lost a name. It finds out whether that was the last name.
  void on_name_lost(const Node& file, const FileKey& dir, const std::string& name);

  Tree& tree_;
  const BackendConfig config_;
  const DiskCalls calls_;
  WritePromise promise_;
  OpenFiles files_;
  StripeLocks locks_;
  SharedSyncs syncs_;
  std::mutex log_mutex_;
  verbs::LogBudget log_budget_;
};

// outlive_tick waits (a few milliseconds at most) until the clock of birth times has passed the birth of a file that is
// about to be removed. No later file with the same inode number can then have the same birth time, and so the same
// handle.
void outlive_tick(const FileStat& st);

}  // namespace weft::serve
