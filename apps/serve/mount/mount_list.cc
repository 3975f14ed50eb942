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
  nfs3::Mountbody mount{.ml_hostname = client.host, .ml_directory = directory};
  const auto is_this = [&](const auto& entry) { return entry.second.mount == mount; };
  if (std::ranges::any_of(entries_, is_this)) return;
  const std::size_t octets = listed_octets(mount);
  if (!make_room(client.group, octets)) return;
  const std::uint64_t number = ++last_number_;
  Ledger::Client holder = octets_.enter(client.group, number);
  Lease lease = holder.take(octets);
  entries_.emplace(number, Entry{std::move(mount), std::move(holder), std::move(lease)});
}

// A group that has its share loses its own oldest entries. If the list is full, the group with most octets loses its
// oldest ones, unless the newcomer's group would have more afterwards.
bool MountList::make_room(const std::string& group, std::size_t octets) {
  const Amount after = octets_.held_by(group) + octets;
  const auto judge = [&](std::uint64_t number) -> Ledger::Standing {
    using enum Ledger::Tenure;
    const std::string& of = entries_.at(number).holder.address();
    const bool leaves = of == group || octets_.held_by(of) >= after;
    return {.tenure = leaves ? kUnused : kFixed, .weight = ~number};
  };
  while (octets_.asks(group, octets) != Ledger::Verdict::kFits) {
    const auto leaves = octets_.gives_way(group, octets, judge);
    if (!leaves) return false;
    entries_.erase(*leaves);
  }
  return true;
}

void MountList::remove(const MountClient& client, const std::string& directory) {
  const nfs3::Mountbody mount{.ml_hostname = client.host, .ml_directory = directory};
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.mount == mount; });
}

void MountList::remove_all(const MountClient& client) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.mount.ml_hostname == client.host; });
}

std::vector<nfs3::Mountbody> MountList::all() const {
  std::vector<nfs3::Mountbody> mounts;
  mounts.reserve(entries_.size());
  for (const auto& [number, entry] : entries_) mounts.push_back(entry.mount);
  return mounts;
}

}  // namespace weft::serve
