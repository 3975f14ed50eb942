#include "apps/common/places.h"

#include <optional>

#include "base/ledger.h"

namespace weft::apps {
namespace {

// Holding is what an occupant holds of one Ledger.
struct Holding {
  Ledger::Client client;
  Lease lease;
};

// Held counts one kind of resource for all occupants that stay.
class Held {
 public:
  Held(const Ledger::Bounds& bounds, std::span<const Occupant> occupants, Amount (*amount_of)(const Occupant&))
      : ledger_(bounds), occupants_(occupants), amount_of_(amount_of) {
    for (const Occupant& one : occupants) {
      Ledger::Client client = ledger_.enter(one.group, holdings_.size());
      Lease lease = client.take(amount_of(one));
      holdings_.push_back({std::move(client), std::move(lease)});
    }
  }

  Ledger::Verdict asks(const Occupant& newcomer) const { return ledger_.asks(newcomer.group, amount_of_(newcomer)); }
  // The index of the occupant that leaves for the newcomer.
  std::optional<std::size_t> gives_way(const Occupant& newcomer) const {
    const auto judge = [&](std::uint64_t index) -> Ledger::Standing {
      using enum Ledger::Tenure;
      const Occupant& one = occupants_[index];
      const auto silent_for = static_cast<Amount>(one.silent_for.count());
      const TimePoint since{TimePoint::duration(index)};  // of two that are alike the first one goes
      if (one.silent_for > kKeepsPlace) return {.tenure = kUnused, .weight = silent_for, .since = since};
      // kBusy would compare with what the newcomer asks for; here the group loses all that the occupant has.
      const Amount kept = ledger_.held_by(one.group) - holdings_[index].lease.amount();
      const bool leaves = one.group != newcomer.group && kept >= ledger_.held_by(newcomer.group) + amount_of_(newcomer);
      return {.tenure = leaves ? kResting : kFixed, .weight = silent_for, .since = since};
    };
    return ledger_.gives_way(newcomer.group, amount_of_(newcomer), judge);
  }
  void leave(std::size_t index) { holdings_[index].lease.end(); }

 private:
  Ledger ledger_;
  std::span<const Occupant> occupants_;
  Amount (*amount_of_)(const Occupant&);
  std::vector<Holding> holdings_;
};

}  // namespace

Admission admit(const Occupant& newcomer, std::span<const Occupant> occupants, const PlaceLimits& limits) {
  using Verdict = Ledger::Verdict;
  Held places({.address = limits.per_group, .all = limits.all}, occupants, [](const Occupant&) { return Amount{1}; });
  Held memory({.address = limits.memory_per_group, .all = limits.memory}, occupants,
              [](const Occupant& one) { return Amount{one.memory}; });
  Admission admission;
  const auto make_room = [&](const Held& held) {
    while (held.asks(newcomer) != Verdict::kFits) {
      const std::optional<std::size_t> leaving = held.gives_way(newcomer);
      if (!leaving) return false;
      places.leave(*leaving);
      memory.leave(*leaving);
      admission.leaving.push_back(*leaving);
    }
    return true;
  };
  const auto refused = [&](const Held& held, std::string what, const char* of_one) -> Admission {
    return {.refusal = what + (held.asks(newcomer) == Verdict::kAddress ? of_one : ""), .leaving = {}};
  };
  if (!make_room(places)) return refused(places, "too many clients", " of one address");
  if (!make_room(memory)) return refused(memory, "too much memory asked for", " by one address");
  return admission;
}

}  // namespace weft::apps
