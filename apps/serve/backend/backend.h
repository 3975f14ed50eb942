#pragma once

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

namespace weft::serve {

struct BackendConfig {
  bool read_write = false;
  std::uint32_t rtmax = 1 << 20;  // octets of one READ
  std::uint32_t wtmax = 1 << 20;  // octets of one WRITE
  std::size_t max_open_files = 256;
  // Whether clients may set the set-user-ID and set-group-ID bits of files, and make devices.
  bool set_id_files = false;
  bool devices = false;
  // RFC 1813 wants names and attributes on stable storage before the reply. Off is for tests alone.
  bool sync_metadata = true;
};

// Backend is NFS version 3 (RFC 1813 section 3.3) on a directory: each procedure as a function from arguments to
// results. Everything runs as the process's own user, and blocks on the disk unless it says otherwise; any thread.
class Backend {
 public:
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
  // The octets of the item come apart: they may stand in the arguments or have come by Read chunk.
  nfs3::NewObjectRes symlink(const nfs3::SymlinkArgs& args, rpcrdma::ConstBytes path);
  nfs3::NewObjectRes mknod(const nfs3::MknodArgs& args);
  nfs3::WccRes remove(const nfs3::DiropArgs& args);
  nfs3::WccRes rmdir(const nfs3::DiropArgs& args);
  nfs3::RenameRes rename(const nfs3::RenameArgs& args);
  nfs3::LinkRes link(const nfs3::LinkArgs& args);

  nfs3::ReaddirRes readdir(const nfs3::ReaddirArgs& args);
  nfs3::ReaddirplusRes readdirplus(const nfs3::ReaddirplusArgs& args);

  // read puts at most into.size() octets there; res.data stays empty, res.count says how many. The target of readlink
  // likewise: `into` holds at least kMaxPath octets.
  nfs3::ReadRes read(const nfs3::ReadArgs& args, rpcrdma::MutBytes into);
  nfs3::ReadlinkRes readlink(const nfs3::FhArgs& args, rpcrdma::MutBytes into);
  nfs3::WriteRes write(const nfs3::WriteArgs& args, rpcrdma::ConstBytes data);
  nfs3::CommitRes commit(const nfs3::CommitArgs& args);

  // read_now and write_now are read and write for a thread that must not wait: they answer where the file is open and
  // memory holds the octets (or takes them, UNSTABLE), and no other thread is in the way. Otherwise nothing, and read
  // or write will say; some octets may have been put where they belong.
  std::optional<nfs3::ReadRes> read_now(const nfs3::ReadArgs& args, rpcrdma::MutBytes into);
  std::optional<nfs3::WriteRes> write_now(const nfs3::WriteArgs& args, rpcrdma::ConstBytes data);
  // For so long after a path was found to lead to an open file these two take the file for lying there: what is moved
  // out of the export behind the server's back can be read and written a moment longer. What has no name any more is
  // gone at once.
  static constexpr std::chrono::milliseconds kPathHolds{100};

  // sweep_open_files closes the files that lie idle (OpenFiles::sweep); to be called once every kSweepInterval, one at
  // a time, while any are open.
  void sweep_open_files() { files_.sweep(); }
  std::size_t num_open_files() const { return files_.size(); }
  static constexpr std::chrono::seconds kSweepInterval{1};

  nfs3::Verf write_verf() const { return promise_.verf(); }
  const SharedSyncs& syncs() const { return syncs_; }

 private:
  using Held = StripeLocks::Held;

  // Found is objects that this request changes, held against other changes through this server, so that what stands in
  // wcc_data frames this change alone. Where one of them is not to be had nothing is held, and its outcome says why.
  struct Found {
    Held held;
    std::vector<Outcome<Node>> nodes;
  };
  // lock_found takes the locks of `files` and `others`, and finds `files`. It searches the tree for a file that moved
  // only while it holds no lock.
  Found lock_found(std::span<const FileKey> files, std::span<const FileKey> others = {});
  struct Locked {
    Held held;
    Node node;
  };
  Outcome<Locked> resolve_locked(const nfs3::NfsFh3& handle);
  // lock_names is lock_found for directories and for the files that `names` in them lead to: a change of a name also
  // changes its file's attributes. The nodes of the directories come first, then the nodes of the files; ENOENT stands
  // for a name without a file.
  Found lock_names(std::span<const FileKey> dirs, std::span<const std::string* const> names);

  // The attributes of an open regular file that lies in the export; nothing where that cannot be told without waiting.
  std::optional<FileStat> stat_now(const FileKey& key, OpenFile& file);

  nfs3::Fattr3 attr(const Node& node) const { return attr(node.key, node.stat); }
  nfs3::Fattr3 attr(const FileKey& key, const FileStat& st) const;
  nfs3::PostOpAttr post_attr(const Node& node) const;
  nfs3::WccData wcc(const Node& before) const;
  // The results of a READ, with what statx said after it, and of a WRITE that was done.
  nfs3::ReadRes read_result(const FileKey& key, const FileStat& st, const nfs3::ReadArgs& args,
                            std::size_t count) const;
  nfs3::WriteRes write_result(const nfs3::WccData& wcc, const nfs3::WriteArgs& args, std::size_t count,
                              const nfs3::Verf& verf) const;

  // SETATTR, or what a new object gets: there the owner and the group that may not be given are left as they are.
  enum class Giving : std::uint8_t { kAsAsked, kAsFarAsAllowed };
  Outcome<int> apply(const Node& node, const nfs3::Sattr3& wanted, Giving owner = Giving::kAsAsked);
  Outcome<int> give(const Node& node, const nfs3::Sattr3& wanted, Giving owner);
  // allowed_mode: the bits of `wanted` that `node` may get: set-ID bits of files only by option, or where it has them.
  mode_t allowed_mode(mode_t wanted, mode_t type, mode_t now = 0) const;
  // drop_set_ids takes the set-ID bits of a file away before its content changes, as the kernel does where the writer
  // is not privileged: 0 or an errno.
  int drop_set_ids(const Node& node) const;
  Outcome<int> set_size(const Node& node, std::uint64_t size);
  // sync_metadata_of makes all changes of the file or directory that came before it stable: 0 or an errno value.
  // Changes that several requests made at about the same time share one fsync(2). sync_now is that one.
  int sync_metadata_of(const Node& node);
  int sync_now(const Node& node);

  // make_object is CREATE, MKDIR, SYMLINK and MKNOD: `maker` makes the name in the directory, which it gets locked, and
  // returns the new file.
  using Maker = std::function<Outcome<Node>(const Node& dir)>;
  nfs3::NewObjectRes make_object(const nfs3::Diropargs3& where, const Maker& maker);
  // Gives a file that was made a moment ago its attributes, or takes it away again.
  Outcome<Node> adopt(const Node& dir, const std::string& name, const nfs3::Sattr3& wanted, mode_t default_mode);
  // existing: the file that had the name already, where that is no error.
  Outcome<Node> create_file(const Node& dir, const nfs3::CreateArgs& args, std::optional<Node>& existing);
  Outcome<Node> use_existing(const Node& dir, const nfs3::CreateArgs& args);

  // Listing is one READDIR or READDIRPLUS under way, and the verifier of its cookies.
  struct Listing {
    std::unique_ptr<DirListing> entries;
    nfs3::Verf verf{};
  };
  Outcome<Listing> list(const Node& node, std::uint64_t cookie, const nfs3::Verf& verf,
                        const DirListing::Limits& limits) const;

  nfs3::WccRes remove_name(const nfs3::Diropargs3& what, bool is_rmdir);
  // To be called when `file` lost a name: was it the last one?
  void on_name_lost(const Node& file, const FileKey& dir, const std::string& name);

  Tree& tree_;
  const BackendConfig config_;
  const DiskCalls calls_;
  WritePromise promise_;
  OpenFiles files_;
  StripeLocks locks_;
  SharedSyncs syncs_;
};

// outlive_tick waits (a few milliseconds at most) until the clock of birth times has passed the birth of a file that is
// about to be removed, so that no later file with its inode number has its birth time too, and with that its handle.
void outlive_tick(const FileStat& st);

}  // namespace weft::serve
