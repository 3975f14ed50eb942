#include <fcntl.h>

#include <algorithm>

#include "apps/serve/backend/backend.h"
#include "apps/serve/backend/nfs_status.h"
#include "apps/serve/backend/reply_limits.h"
#include "apps/serve/export/dir_listing.h"

// READDIR and READDIRPLUS.
namespace weft::serve {

using nfs3::Nfsstat3;

namespace {

// Cookies are good for as long as the directory lives, so all directories of one kind share one verifier.
constexpr nfs3::Verf kFilesystemVerf = {'w', 'e', 'f', 't', 'd', 'o', 'f', 'f'};
constexpr nfs3::Verf kByNameVerf = {'w', 'e', 'f', 't', 'n', 'a', 'm', 'e'};

Nfsstat3 to_status(Errno error) {
  return error == Errno{EBADE} ? Nfsstat3::kBadCookie : to_nfsstat3(error);
}

}  // namespace

Outcome<Backend::Listing> Backend::list(const Node& node, std::uint64_t cookie, const nfs3::Verf& verf,
                                        const DirListing::Limits& limits) const {
  if (!node.stat.is_dir()) return Errno{ENOTDIR};
  Outcome<Fd> fd = open_beneath(node.path_fd(), {}, O_RDONLY | O_DIRECTORY);
  if (!fd) return fd.error();
  const DirListing::Places places = DirListing::places_of(fd->get());
  Listing out{.entries = nullptr, .verf = places == DirListing::Places::kByName ? kByNameVerf : kFilesystemVerf};
  if (cookie != 0 && verf != out.verf) return Errno{EBADE};
  auto entries = DirListing::start(std::move(fd.value()), places, cookie, tree_.cookie_key(), limits);
  if (!entries) return entries.error();
  out.entries = std::move(entries.value());
  return out;
}

template <typename Args, typename Res, typename Add>
Res Backend::list_into(const Args& args, std::size_t limit, std::size_t entry_cost, const Add& add) {
  Res res;
  Outcome<Node> node = tree_.resolve(args.dir);
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  res.dir_attributes = attr(node.value());
  const std::size_t base_len = nfs3::readdir_base_len(true);
  auto listing = list(node.value(), args.cookie, args.cookieverf,
                      {.room = limit - std::min(limit, base_len), .entry_cost = entry_cost});
  if (!listing) {
    res.status = to_status(listing.error());
    return res;
  }
  const bool is_root = node->key == tree_.root().key;
  DirEntry entry;
  for (;;) {
    Outcome<bool> more = listing->entries->next(entry);
    if (!more) {
      res.status = to_nfsstat3(more.error());
      return res;
    }
    if (!more.value()) {
      res.eof = true;
      break;
    }
    // The root's ".." hides the directory above the root.
    if (is_root && is_dot_dot(entry.name)) entry.ino = node->stat.ino;
    if (!add(node.value(), entry, res)) break;
  }
  if (res.entries.empty() && (!res.eof || base_len > limit)) res.status = Nfsstat3::kToosmall;
  res.cookieverf = listing->verf;
  return res;
}

nfs3::ReaddirRes Backend::readdir(const nfs3::ReaddirArgs& args) {
  const std::size_t limit = std::min(args.count, kMaxListReply);
  std::size_t used = nfs3::readdir_base_len(true);
  return list_into<nfs3::ReaddirArgs, nfs3::ReaddirRes>(
      args, limit, nfs3::entry_len(0), [&](const Node&, DirEntry& entry, nfs3::ReaddirRes& res) {
        used += nfs3::entry_len(entry.name.size());
        if (used > limit) return false;
        res.entries.push_back({.fileid = entry.ino, .name = std::move(entry.name), .cookie = entry.cookie});
        return true;
      });
}

nfs3::ReaddirplusRes Backend::readdirplus(const nfs3::ReaddirplusArgs& args) {
  const std::size_t limit = std::min(args.maxcount, kMaxListReply);
  std::size_t used = nfs3::readdir_base_len(true), used_names = 0;
  return list_into<nfs3::ReaddirplusArgs, nfs3::ReaddirplusRes>(
      args, limit, nfs3::entryplus_len(0, true, HandleCodec::kHandleLen),
      [&](const Node& dir, DirEntry& entry, nfs3::ReaddirplusRes& res) {
        used_names += nfs3::entry_len(entry.name.size()) - 4;
        used += nfs3::entryplus_len(entry.name.size(), true, HandleCodec::kHandleLen);
        if (used > limit || (used_names > args.dircount && !res.entries.empty())) return false;
        nfs3::Entryplus3 out;
        out.fileid = entry.ino;
        out.name = entry.name;
        out.cookie = entry.cookie;
        // ".." comes without attributes: they would cost a walk from the root, and clients do not need them here.
        if (!is_dot_dot(entry.name)) {
          // A file that was removed meanwhile, or that may not be looked up, comes without attributes as well.
          if (Outcome<Node> file = tree_.lookup(dir, entry.name); file) {
            out.name_attributes = attr(file.value());
            out.name_handle = tree_.handle_of(file->key);
          }
        }
        res.entries.push_back(std::move(out));
        return true;
      });
}

}  // namespace weft::serve
