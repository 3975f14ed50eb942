#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// FaultLog joins a Terminate that blames the other side with the finding that the blamed message already has: the
// violation is one. A value without I/O; it remembers the last kMaxFaults findings of each side.
class FaultLog {
 public:
  static constexpr std::size_t kMaxFaults = 8;

  // on_findings takes a frame with findings. It sets Finding::confirms.
  void on_findings(Frame& frame);

 private:
  struct Fault {
    EarlierFrame where;
    std::string_view requirement;
    std::string effect;
    std::string header;  // of DDP, as far as the capture has it
  };

  // Whether an earlier message has the same fault as the one that the Terminate names.
  bool join(const Frame& frame, Finding& blame) const;

  std::array<std::vector<Fault>, 2> faults_;  // by side
};

}  // namespace weft::apps::dissect
