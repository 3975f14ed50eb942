#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace weft {

// RestWatch finds the objects that have come to rest, so that they give back the memory that only busy ones need. An
// object rests when it was not used for kRest; this is seen at most kRest later. Key is the name of an object: it may
// find nothing any more. A use costs a comparison, and each object in use is looked at once in a period of kRest,
// however often it is used. Reads no clock. Not thread-safe.
template <typename Key>
class RestWatch {
 public:
  static constexpr Duration kRest = std::chrono::seconds(1);
  // The most objects that one run looks at. If more have come to rest together, other work gets its turn between them.
  static constexpr std::size_t kMaxPerRun = 256;

  // Mark is a part of each object.
  class Mark {
    friend class RestWatch;
    std::uint32_t used_in = 0;  // the period of the last use; 0: not watched, because it rests
  };

  // The object is used now.
  void use(const Key& who, Mark& mark, TimePoint now) {
    if (mark.used_in == 0) in_use_.push_back(who);
    mark.used_in = period_;
    if (!due_) due_ = now + kRest;
  }

  // When run is due; nothing while all objects rest.
  std::optional<TimePoint> due() const { return due_; }
  bool is_due(TimePoint now) const { return due_ && *due_ <= now; }

  // Calls rest(object) for the objects that have come to rest. find(key): a pointer to the object, null if there is
  // none any more. mark_of(object): its Mark.
  template <typename Find, typename MarkOf, typename Rest>
  void run(TimePoint now, Find find, MarkOf mark_of, Rest rest) {
    if (!is_due(now)) return;
    if (judged_.empty()) {
      judged_.swap(in_use_);
      ++period_;
    }
    for (std::size_t num = 0; num < kMaxPerRun && !judged_.empty(); ++num) {
      const Key who = judged_.back();
      judged_.pop_back();
      auto* object = find(who);
      if (object == nullptr) continue;
      Mark& mark = mark_of(*object);
      if (mark.used_in + 1 >= period_) {  // in the period that has ended, or since
        in_use_.push_back(who);
        continue;
      }
      mark.used_in = 0;
      rest(*object);
    }
    if (!judged_.empty()) return;  // due at once
    if (in_use_.empty()) {
      due_.reset();
    } else {
      due_ = now + kRest;
    }
  }

 private:
  std::vector<Key> in_use_;
  std::vector<Key> judged_;   // of those in use in the last period, the ones that run has not looked at
  std::uint32_t period_ = 2;  // now; the first one, so that a Mark of 0 is in no period near it
  std::optional<TimePoint> due_;
};

}  // namespace weft
