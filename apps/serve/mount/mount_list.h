#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/nfs3/mount.h"
#include "base/ledger.h"

namespace weft::serve {

// MountClient is the sender of a Call: its address, as DUMP shows it, and the peer_group of the address.
struct MountClient {
  std::string host;
  std::string group;
};

// MountList is the list of hosts and directories that DUMP shows. RFC 1813 calls it information for people, so names
// may go: when the list or the share of a group is full, the oldest entry of the group with the most octets goes. That
// may be the new one. A value without a lock.
class MountList {
 public:
  // Octets of the list as a DUMP's results. An entry counts for kLeastEntry at least, so there are 1,024 at most.
  static constexpr std::size_t kMaxOctets = std::size_t{64} << 10;
  static constexpr std::size_t kMaxOctetsPerGroup = kMaxOctets / 4 * 3;
  static constexpr std::size_t kLeastEntry = 64;

  void add(const MountClient& client, const std::string& directory);
  void remove(const MountClient& client, const std::string& directory);
  void remove_all(const MountClient& client);
  std::vector<nfs3::Mountbody> all() const;

 private:
  struct Entry {
    nfs3::Mountbody mount;
    Ledger::Client holder;
    Lease octets;
  };
  // False: no entry goes for one of this group.
  bool make_room(const std::string& group, std::size_t octets);

  Ledger octets_{{.address = kMaxOctetsPerGroup, .all = kMaxOctets}};
  std::map<std::uint64_t, Entry> entries_;  // by number, so oldest first
  std::uint64_t last_number_ = 0;
};

}  // namespace weft::serve
