#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "apps/serve/export/dir_reader.h"
#include "apps/serve/export/outcome.h"
#include "apps/serve/export/siphash.h"
#include "base/fd.h"

namespace weft::serve {

// DirListing reads a directory from a cookie on. Its order keeps the places of entries while other entries come and go,
// and across restarts.
//
// If the filesystem's own places (d_off) keep that promise, they are the cookies. On overlayfs, on tmpfs of Linux
// before 6.6 and on unknown filesystems they count entries, so that a removed entry makes the reader pass over another
// one. There a cookie is a keyed hash of the name, and entries come in the order of cookies: each listing reads the
// whole directory and keeps the entries that one reply can hold.
class DirListing {
 public:
  // kByName takes 63 bits of the hash, and 1 and 2 for "." and "..".
  enum class Places : std::uint8_t { kFilesystem, kByName };
  static Places places_of(int fd);

  // room: the octets that the entries may take, as the caller counts them: at least entry_cost and the name for each.
  struct Limits {
    std::size_t room = 0;
    std::size_t entry_cost = 0;
  };
  // start begins behind the entry that had this cookie; 0 is the beginning. EBADE: the cookie is not of this directory.
  static Outcome<std::unique_ptr<DirListing>> start(Fd dir, Places places, std::uint64_t cookie, const SipHashKey& key,
                                                    const Limits& limits);

  // next: false at the end of the directory.
  Outcome<bool> next(DirEntry& entry);

 private:
  explicit DirListing(Fd dir) : fd_(std::move(dir)), reader_(fd_.get()) {}
  int gather(std::uint64_t cookie, const SipHashKey& key, const Limits& limits);

  Fd fd_;
  DirReader reader_;
  std::optional<std::deque<DirEntry>> gathered_;  // with Places::kByName
};

}  // namespace weft::serve
