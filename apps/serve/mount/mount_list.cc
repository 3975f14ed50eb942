#include "apps/serve/mount/mount_list.h"

#include <algorithm>
#include <utility>

namespace weft::serve {
namespace {

// A string's length and octets in XDR (RFC 4506 section 4.11).
std::size_t xdr_octets(const std::string& text) {
  return 4 + (text.size() + 3) / 4 * 4;
}

std::size_t listed_octets(const nfs3::Mountbody& mount) {
  constexpr std::size_t kFollows = 4;
  const std::size_t octets = kFollows + xdr_octets(mount.ml_hostname) + xdr_octets(mount.ml_directory);
  return std::max(octets, MountList::kLeastEntry);
}

}  // namespace

void MountList::add(const MountClient& client, const std::string& directory) {
  Entry entry{.group = client.group, .mount = {.ml_hostname = client.host, .ml_directory = directory}};
  const auto is_this = [&](const Entry& other) { return other.mount == entry.mount; };
  if (std::ranges::any_of(entries_, is_this)) return;
  entry.octets = listed_octets(entry.mount);
  octets_ += entry.octets;
  octets_of_group_[entry.group] += entry.octets;
  entries_.push_back(std::move(entry));
  while (octets_ > kMaxOctets || octets_of(client.group) > kMaxOctetsPerGroup) remove_oldest_of_largest_group();
}

void MountList::remove(const MountClient& client, const std::string& directory) {
  const nfs3::Mountbody mount{.ml_hostname = client.host, .ml_directory = directory};
  std::erase_if(entries_, [&](const Entry& entry) {
    if (entry.mount != mount) return false;
    forget(entry);
    return true;
  });
}

void MountList::remove_all(const MountClient& client) {
  std::erase_if(entries_, [&](const Entry& entry) {
    if (entry.mount.ml_hostname != client.host) return false;
    forget(entry);
    return true;
  });
}

std::vector<nfs3::Mountbody> MountList::all() const {
  std::vector<nfs3::Mountbody> mounts;
  mounts.reserve(entries_.size());
  for (const Entry& entry : entries_) mounts.push_back(entry.mount);
  return mounts;
}

std::size_t MountList::octets_of(const std::string& group) const {
  const auto found = octets_of_group_.find(group);
  return found == octets_of_group_.end() ? 0 : found->second;
}

void MountList::forget(const Entry& entry) {
  octets_ -= entry.octets;
  const auto group = octets_of_group_.find(entry.group);
  group->second -= entry.octets;
  if (group->second == 0) octets_of_group_.erase(group);
}

void MountList::remove_oldest_of_largest_group() {
  const auto has_less = [&](const Entry& a, const Entry& b) {
    return octets_of_group_.at(a.group) < octets_of_group_.at(b.group);
  };
  const auto oldest = std::ranges::max_element(entries_, has_less);
  forget(*oldest);
  entries_.erase(oldest);
}

}  // namespace weft::serve
