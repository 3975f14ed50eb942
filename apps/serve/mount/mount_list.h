#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "apps/nfs3/mount.h"

namespace weft::serve {

// MountClient is the sender of a Call: its address, as DUMP shows it, and the peer_group of the address.
struct MountClient {
  std::string host;
  std::string group;
};

// MountList is the list of hosts and directories that DUMP shows. RFC 1813 calls it information for people, so names
// may go: when the list or the share of a group is full, the oldest entry of the group with the most octets goes. A
// value without a lock.
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
    std::string group;
    nfs3::Mountbody mount;
    std::size_t octets = 0;
  };
  // 0 if the group has no entry.
  std::size_t octets_of(const std::string& group) const;
  void forget(const Entry& entry);
  void remove_oldest_of_largest_group();

  std::deque<Entry> entries_;  // oldest first
  std::map<std::string, std::size_t> octets_of_group_;
  std::size_t octets_ = 0;
};

}  // namespace weft::serve
