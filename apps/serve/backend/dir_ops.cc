#include <fcntl.h>

#include <algorithm>

#include "apps/serve/backend/backend.h"
#include "apps/serve/backend/nfs_status.h"
#include "apps/serve/export/dir_reader.h"

// READDIR and READDIRPLUS.
namespace weft::serve {

using nfs3::Nfsstat3;

namespace {

// The cookies are the filesystem's own and good for as long as the directory lives, so one verifier is good for all.
constexpr nfs3::Verf kCookieverf = {'w', 'e', 'f', 't', 'd', 'o', 'f', 'f'};

// Octets of one reply at most, whatever the client asks for.
constexpr std::uint32_t kMaxReply = 1 << 20;

// Listing is one READDIR or READDIRPLUS in progress.
struct Listing {
  Listing(Fd dir, const Node& node) : fd(std::move(dir)), reader(fd.get()), node(node) {}

  Fd fd;
  DirReader reader;
  const Node& node;
};

Outcome<std::unique_ptr<Listing>> start(const Node& node, std::uint64_t cookie, const nfs3::Verf& verf) {
  if (!node.stat.is_dir()) return Errno{ENOTDIR};
  Outcome<Fd> fd = open_beneath(node.path_fd(), {}, O_RDONLY | O_DIRECTORY);
  if (!fd) return fd.error();
  auto listing = std::make_unique<Listing>(std::move(fd.value()), node);
  if (cookie != 0 && (verf != kCookieverf || listing->reader.seek(cookie) != 0)) return Errno{EBADE};
  return listing;
}

Nfsstat3 to_status(Errno error) {
  return error == Errno{EBADE} ? Nfsstat3::kBadCookie : to_nfsstat3(error);
}

}  // namespace

nfs3::ReaddirRes Backend::readdir(const nfs3::ReaddirArgs& args) {
  nfs3::ReaddirRes res;
  Outcome<Node> node = tree_.resolve(args.dir);
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  res.dir_attributes = attr(node.value());
  auto listing = start(node.value(), args.cookie, args.cookieverf);
  if (!listing) {
    res.status = to_status(listing.error());
    return res;
  }
  const std::size_t limit = std::min(args.count, kMaxReply);
  std::size_t used = nfs3::readdir_base_len(true);
  const bool is_root = node->key == tree_.root().key;
  DirEntry entry;
  for (;;) {
    Outcome<bool> more = (*listing)->reader.next(entry);
    if (!more) {
      res.status = to_nfsstat3(more.error());
      return res;
    }
    if (!more.value()) {
      res.eof = true;
      break;
    }
    used += nfs3::entry_len(entry.name.size());
    if (used > limit) break;
    // What lies above the root is nobody's business.
    if (is_root && is_dot_dot(entry.name)) entry.ino = node->stat.ino;
    res.entries.push_back({.fileid = entry.ino, .name = std::move(entry.name), .cookie = entry.cookie});
  }
  if (res.entries.empty() && !res.eof) res.status = Nfsstat3::kToosmall;
  if (res.eof && nfs3::readdir_base_len(true) > limit) res.status = Nfsstat3::kToosmall;
  res.cookieverf = kCookieverf;
  return res;
}

nfs3::ReaddirplusRes Backend::readdirplus(const nfs3::ReaddirplusArgs& args) {
  nfs3::ReaddirplusRes res;
  Outcome<Node> node = tree_.resolve(args.dir);
  if (!node) {
    res.status = to_nfsstat3(node.error());
    return res;
  }
  res.dir_attributes = attr(node.value());
  auto listing = start(node.value(), args.cookie, args.cookieverf);
  if (!listing) {
    res.status = to_status(listing.error());
    return res;
  }
  const std::size_t limit = std::min(args.maxcount, kMaxReply);
  std::size_t used = nfs3::readdir_base_len(true), used_names = 0;
  const bool is_root = node->key == tree_.root().key;
  DirEntry entry;
  for (;;) {
    Outcome<bool> more = (*listing)->reader.next(entry);
    if (!more) {
      res.status = to_nfsstat3(more.error());
      return res;
    }
    if (!more.value()) {
      res.eof = true;
      break;
    }
    used_names += nfs3::entry_len(entry.name.size()) - 4;
    used += nfs3::entryplus_len(entry.name.size(), true, HandleCodec::kHandleLen);
    if (used > limit || (used_names > args.dircount && !res.entries.empty())) break;
    if (is_root && is_dot_dot(entry.name)) entry.ino = node->stat.ino;
    nfs3::Entryplus3 out;
    out.fileid = entry.ino;
    out.name = entry.name;
    out.cookie = entry.cookie;
    // ".." goes without: its attributes would cost a walk from the root, and nobody asks for them here.
    if (!is_dot_dot(entry.name)) {
      // A file that went meanwhile, or that may not be looked up, goes without as well.
      if (Outcome<Node> file = tree_.lookup(node.value(), entry.name); file) {
        out.name_attributes = attr(file.value());
        out.name_handle = tree_.handle_of(file->key);
      }
    }
    res.entries.push_back(std::move(out));
  }
  if (res.entries.empty() && (!res.eof || nfs3::readdir_base_len(true) > limit)) res.status = Nfsstat3::kToosmall;
  res.cookieverf = kCookieverf;
  return res;
}

}  // namespace weft::serve
