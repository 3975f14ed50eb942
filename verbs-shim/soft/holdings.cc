#include "verbs-shim/soft/holdings.h"

#include <utility>

namespace weft::verbs::soft {

Holdings::Entry& Holdings::entry(Handle who) {
  if (who.index >= entries_.size()) entries_.resize(who.index + std::size_t{1});
  return entries_[who.index];
}

void Holdings::add(ByAge& to, std::uint64_t& age, Handle who) {
  age = ++last_age_;
  to.emplace(age, who);
}

void Holdings::add_silent(Handle who) {
  add(silent_, entry(who).silent, who);
}

void Holdings::add_lingering(Handle who) {
  add(lingering_, entry(who).lingering, who);
}

void Holdings::remove_silent(Handle who) {
  silent_.erase(std::exchange(entry(who).silent, 0));
}

void Holdings::park(Handle who, std::size_t num_octets, bool same_fpdu) {
  if (num_octets == 0) return;
  Entry& holder = entry(who);
  if (holder.parked == 0 || !same_fpdu) holder.parked = ++last_age_;
  holder.num_octets = num_octets;
  parked_.emplace(holder.parked, who);
  num_parked_octets_ += num_octets;
}

void Holdings::unpark(Handle who) {
  Entry& holder = entry(who);
  if (holder.num_octets == 0) return;
  parked_.erase(holder.parked);
  num_parked_octets_ -= std::exchange(holder.num_octets, 0);
}

void Holdings::forget(Handle who) {
  unpark(who);
  remove_silent(who);
  lingering_.erase(entry(who).lingering);
  entry(who) = {};
}

std::optional<Handle> Holdings::oldest_silent() const {
  return silent_.empty() ? std::nullopt : std::optional(silent_.begin()->second);
}

std::optional<Holdings::Excess> Holdings::excess() const {
  if (silent_.size() > limits_.max_silent) return Excess{silent_.begin()->second, What::kSilent};
  if (lingering_.size() > limits_.max_lingering) return Excess{lingering_.begin()->second, What::kLingering};
  if (num_parked_octets_ > limits_.max_parked) return Excess{parked_.begin()->second, What::kParked};
  return std::nullopt;
}

}  // namespace weft::verbs::soft
