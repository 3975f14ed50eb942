#pragma once

#include <cstdint>
#include <unordered_set>

#include "apps/dissect/held_entries.h"
#include "ddp/memory_table.h"

namespace weft::apps::dissect {

// SentStags remembers the STags of the tagged segments that a side sent. A value without I/O. Beyond kMax of them and
// beyond HeldEntries, any STag may have been sent.
class SentStags {
 public:
  static constexpr std::size_t kMax = 1024;

  // held outlives the value.
  explicit SentStags(HeldEntries& held) : count_(held) {}

  void on_sent(ddp::Stag stag) {
    if (!knows_all_ || (stag.value == last_ && !stags_.empty())) return;
    last_ = stag.value;
    if (stags_.contains(last_)) return;
    if (stags_.size() == kMax || !count_.has_room(1)) return on_gap();
    stags_.insert(last_);
    count_.set(stags_.size());
  }
  // The capture misses segments.
  void on_gap() {
    knows_all_ = false;
    stags_ = {};
    count_.set(0);
  }
  bool may_have_sent(ddp::Stag stag) const { return !knows_all_ || stags_.contains(stag.value); }

 private:
  std::unordered_set<std::uint32_t> stags_;
  std::uint32_t last_ = 0;
  bool knows_all_ = true;
  EntryCount count_;
};

}  // namespace weft::apps::dissect
