#include "verbs-shim/soft/holdings.h"

#include <cassert>
#include <utility>

namespace weft::verbs::soft {

namespace {

constexpr std::array kAll = {Holdings::What::kSilent, Holdings::What::kLingering, Holdings::What::kParked};

constexpr std::size_t index_of(Holdings::What what) {
  return static_cast<std::size_t>(what);
}

}  // namespace

Holdings::Holdings(const Limits& limits) : unnamed_(&addresses_[""]) {
  kinds_[index_of(What::kSilent)].most = limits.max_silent;
  kinds_[index_of(What::kLingering)].most = limits.max_lingering;
  kinds_[index_of(What::kParked)].most = limits.max_parked;
}

Holdings::Entry& Holdings::entry(Handle who) {
  if (who.index >= entries_.size()) entries_.resize(who.index + std::size_t{1});
  return entries_[who.index];
}

void Holdings::enter(Handle who, const std::string& name) {
  Address& address = addresses_[name];
  address.name = name;
  ++address.num_members;
  entry(who).address = &address;
}

Holdings::Shelf& Holdings::shelf_of(const Entry& entry, What what) {
  Address& address = entry.address != nullptr ? *entry.address : *unnamed_;
  Shelf& shelf = address.shelves[index_of(what)];
  if (!shelf.client) {
    shelf.client = kinds_[index_of(what)].ledger.enter(address.name);
    shelf.lease = shelf.client.lease();
  }
  return shelf;
}

bool Holdings::LosesFirst::operator()(const Shelf* a, const Shelf* b) const {
  if (a->lease.amount() != b->lease.amount()) return a->lease.amount() > b->lease.amount();
  return a->by_age.begin()->first < b->by_age.begin()->first;
}

template <typename F>
void Holdings::change(Shelf& shelf, What what, F with) {
  auto& ranked = kinds_[index_of(what)].shelves;
  if (!shelf.by_age.empty()) ranked.erase(&shelf);
  with();
  if (!shelf.by_age.empty()) ranked.insert(&shelf);
}

void Holdings::add(Handle who, What what, std::size_t amount, std::uint64_t age) {
  Entry& holder = entry(who);
  Shelf& shelf = shelf_of(holder, what);
  holder.holdings[index_of(what)] = {age, amount};
  change(shelf, what, [&] {
    shelf.by_age.emplace(age, who);
    const auto verdict = shelf.lease.resize(shelf.lease.amount() + amount);
    assert(verdict == Ledger::Verdict::kFits);
    static_cast<void>(verdict);
  });
}

void Holdings::remove(Handle who, What what) {
  Entry& holder = entry(who);
  Holding& held = holder.holdings[index_of(what)];
  if (held.amount == 0) return;
  Shelf& shelf = shelf_of(holder, what);
  change(shelf, what, [&] {
    shelf.by_age.erase(held.age);
    static_cast<void>(shelf.lease.resize(shelf.lease.amount() - std::exchange(held.amount, 0)));
  });
}

void Holdings::add_silent(Handle who) {
  add(who, What::kSilent, 1, ++last_age_);
}

void Holdings::add_lingering(Handle who) {
  add(who, What::kLingering, 1, ++last_age_);
}

void Holdings::remove_silent(Handle who) {
  remove(who, What::kSilent);
}

void Holdings::park(Handle who, std::size_t num_octets, bool same_fpdu) {
  if (num_octets == 0) return;
  const std::uint64_t age = entry(who).holdings[index_of(What::kParked)].age;
  add(who, What::kParked, num_octets, age == 0 || !same_fpdu ? ++last_age_ : age);
}

void Holdings::unpark(Handle who) {
  remove(who, What::kParked);
}

void Holdings::forget(Handle who) {
  for (const What what : kAll) remove(who, what);
  Address* address = std::exchange(entry(who), {}).address;
  if (address == nullptr || --address->num_members != 0 || address == unnamed_) return;
  addresses_.erase(addresses_.find(address->name));
}

std::optional<Handle> Holdings::next_out(What what) const {
  const auto& shelves = kinds_[index_of(what)].shelves;
  if (shelves.empty()) return std::nullopt;
  return (*shelves.begin())->by_age.begin()->second;
}

std::optional<Handle> Holdings::oldest_silent() const {
  return next_out(What::kSilent);
}

bool Holdings::exceeds() const {
  for (const Kind& kind : kinds_) {
    if (kind.ledger.held() > kind.most) return true;
  }
  return false;
}

std::optional<Holdings::Excess> Holdings::excess() const {
  for (const What what : kAll) {
    const Kind& kind = kinds_[index_of(what)];
    if (kind.ledger.held() > kind.most) return Excess{*next_out(what), what};
  }
  return std::nullopt;
}

}  // namespace weft::verbs::soft
