#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "verbs-shim/soft/handle.h"

namespace weft::verbs::soft {

// SlotMap owns objects that Handles name. An object keeps its address.
template <typename T>
class SlotMap {
 public:
  // make(handle) returns a std::unique_ptr<T>, and adds nothing itself.
  template <typename Make>
  T& add(Make make) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    Slot& slot = slots_[index];
    slot.object = make(Handle{index, slot.generation});
    free_.pop_back();
    return *slot.object;
  }
  // Null if the object was removed. who: a default Handle, or a Handle of this map.
  T* find(Handle who) const {
    assert(who.index < slots_.size());
    const Slot& slot = slots_[who.index];
    return slot.generation == who.generation ? slot.object.get() : nullptr;
  }
  void remove(Handle who) {
    if (find(who) == nullptr) return;
    Slot& slot = slots_[who.index];
    if (++slot.generation == 0) ++slot.generation;
    const auto gone = std::move(slot.object);
    free_.push_back(who.index);
  }
  // f may neither add nor remove.
  template <typename F>
  void for_each(F f) {
    for (Slot& slot : slots_) {
      if (slot.object) f(*slot.object);
    }
  }

 private:
  struct Slot {
    std::uint32_t generation = 1;
    std::unique_ptr<T> object;
  };
  std::vector<Slot> slots_{1};  // never empty: a default Handle has a slot to look at
  std::vector<std::uint32_t> free_{0};
};

}  // namespace weft::verbs::soft
