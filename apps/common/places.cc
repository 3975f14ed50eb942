#include "apps/common/places.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace weft::apps {

namespace {

struct Held {
  std::size_t num = 0;
  std::uint64_t memory = 0;

  void add(const Occupant& one) {
    ++num;
    memory += one.memory;
  }
  void remove(const Occupant& one) {
    --num;
    memory -= one.memory;
  }
};

enum class Shortage : std::uint8_t { kNone, kPlaces, kPlacesOfGroup, kMemory, kMemoryOfGroup };

std::string words_of(Shortage shortage) {
  switch (shortage) {
    case Shortage::kNone: break;
    case Shortage::kPlaces: return "too many clients";
    case Shortage::kPlacesOfGroup: return "too many clients of one address";
    case Shortage::kMemory: return "too much memory asked for";
    case Shortage::kMemoryOfGroup: return "too much memory asked for by one address";
  }
  return {};
}

// Places counts the places and the memory of the occupants that have not been made to leave.
class Places {
 public:
  Places(const Occupant& newcomer, std::span<const Occupant> occupants, const PlaceLimits& limits)
      : newcomer_(newcomer), occupants_(occupants), limits_(limits), left_(occupants.size(), false) {
    for (const Occupant& one : occupants) {
      all_.add(one);
      groups_[one.group].add(one);
    }
  }

  Shortage shortage() {
    const Held& theirs = groups_[newcomer_.group];
    if (theirs.num >= limits_.per_group) return Shortage::kPlacesOfGroup;
    if (is_short(theirs.memory, limits_.memory_per_group)) return Shortage::kMemoryOfGroup;
    if (all_.num >= limits_.all) return Shortage::kPlaces;
    if (is_short(all_.memory, limits_.memory)) return Shortage::kMemory;
    return Shortage::kNone;
  }

  // Returns the occupant that leaves next.
  std::optional<std::size_t> next(Shortage shortage) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < occupants_.size(); ++i) {
      if (!left_[i] && may_leave(occupants_[i], shortage) && (!best || rank(i, shortage) > rank(*best, shortage))) {
        best = i;
      }
    }
    return best;
  }

  void leave(std::size_t i) {
    left_[i] = true;
    all_.remove(occupants_[i]);
    groups_[occupants_[i].group].remove(occupants_[i]);
  }

 private:
  static bool is_idle(const Occupant& one) { return one.silent_for > kKeepsPlace; }
  bool is_short(std::uint64_t held, std::uint64_t limit) const {
    return newcomer_.memory > limit - std::min(limit, held);
  }

  bool may_leave(const Occupant& one, Shortage shortage) {
    const bool is_memory = shortage == Shortage::kMemory || shortage == Shortage::kMemoryOfGroup;
    if (is_memory && one.memory == 0) return false;
    const bool is_theirs = one.group == newcomer_.group;
    if (shortage == Shortage::kPlacesOfGroup || shortage == Shortage::kMemoryOfGroup) return is_theirs && is_idle(one);
    if (is_idle(one)) return true;
    Held from = groups_[one.group], to = groups_[newcomer_.group];
    from.remove(one);
    to.add(newcomer_);
    return !is_theirs && (is_memory ? from.memory >= to.memory : from.num >= to.num);
  }

  std::tuple<bool, std::uint64_t, std::chrono::steady_clock::duration> rank(std::size_t i, Shortage shortage) {
    const Occupant& one = occupants_[i];
    const Held& held = groups_[one.group];
    return {is_idle(one), shortage == Shortage::kMemory ? held.memory : held.num, one.silent_for};
  }

  const Occupant& newcomer_;
  const std::span<const Occupant> occupants_;
  const PlaceLimits& limits_;
  std::vector<bool> left_;
  Held all_;
  std::map<std::string, Held> groups_;
};

}  // namespace

Admission admit(const Occupant& newcomer, std::span<const Occupant> occupants, const PlaceLimits& limits) {
  Places places(newcomer, occupants, limits);
  Admission admission;
  for (Shortage shortage = places.shortage(); shortage != Shortage::kNone; shortage = places.shortage()) {
    const std::optional<std::size_t> leaving = places.next(shortage);
    if (!leaving) return {.refusal = words_of(shortage), .leaving = {}};
    places.leave(*leaving);
    admission.leaving.push_back(*leaving);
  }
  return admission;
}

}  // namespace weft::apps
