#include "apps/serve/export/dir_listing.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/serve/export/beneath.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

namespace weft::serve {
namespace {

constexpr std::uint64_t kDotCookie = 1, kDotDotCookie = 2, kFirstNameCookie = 3;

std::uint64_t cookie_of(const std::string& name, const SipHashKey& key) {
  if (is_dot(name)) return kDotCookie;
  if (is_dot_dot(name)) return kDotDotCookie;
  // Clients and libraries treat cookies as signed numbers.
  return std::max(siphash(key, name) >> 1, kFirstNameCookie);
}

// Names with equal hashes come in the order of the names, so that every listing has the same order.
bool comes_before(const DirEntry& a, const DirEntry& b) {
  return a.cookie != b.cookie ? a.cookie < b.cookie : a.name < b.name;
}

}  // namespace

DirListing::Places DirListing::places_of(int fd) {
  struct statfs fs {};
  if (::fstatfs(fd, &fs) != 0) return Places::kByName;
  switch (static_cast<unsigned long>(fs.f_type)) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC: return Places::kFilesystem;
    default: return Places::kByName;
  }
}

Outcome<std::unique_ptr<DirListing>> DirListing::start(Fd dir, Places places, std::uint64_t cookie,
                                                       const SipHashKey& key, const Limits& limits) {
  if (cookie > static_cast<std::uint64_t>(INT64_MAX)) return Errno{EBADE};
  std::unique_ptr<DirListing> out(new DirListing(std::move(dir)));
  if (places == Places::kByName) {
    if (int error = out->gather(cookie, key, limits); error != 0) return Errno{error};
  } else if (cookie != 0 && out->reader_.seek(cookie) != 0) {
    return Errno{EBADE};
  }
  return out;
}

// Keeps the first entries behind the cookie: as many as fit, and at least one that does not fit. So the caller runs out
// of room before the listing ends.
int DirListing::gather(std::uint64_t cookie, const SipHashKey& key, const Limits& limits) {
  const auto cost = [&](const DirEntry& entry) { return limits.entry_cost + entry.name.size(); };
  std::vector<DirEntry> heap;  // the last entry is in front
  std::size_t used = 0;
  DirEntry entry;
  for (;;) {
    Outcome<bool> more = reader_.next(entry);
    if (!more) return more.error().value;
    if (!more.value()) break;
    entry.cookie = cookie_of(entry.name, key);
    if (entry.cookie <= cookie) continue;
    if (used > limits.room && !comes_before(entry, heap.front())) continue;
    used += cost(entry);
    heap.push_back(std::move(entry));
    std::push_heap(heap.begin(), heap.end(), comes_before);
    while (used > limits.room && used - cost(heap.front()) > limits.room) {
      used -= cost(heap.front());
      std::pop_heap(heap.begin(), heap.end(), comes_before);
      heap.pop_back();
    }
  }
  std::sort_heap(heap.begin(), heap.end(), comes_before);
  gathered_.emplace(std::make_move_iterator(heap.begin()), std::make_move_iterator(heap.end()));
  return 0;
}

Outcome<bool> DirListing::next(DirEntry& entry) {
  if (!gathered_) return reader_.next(entry);
  if (gathered_->empty()) return false;
  entry = std::move(gathered_->front());
  gathered_->pop_front();
  return true;
}

}  // namespace weft::serve
