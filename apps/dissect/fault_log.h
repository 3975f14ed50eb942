#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/dissect/accusation.h"
#include "apps/dissect/effect.h"
#include "apps/dissect/frame.h"
#include "rdmap/terminate.h"

namespace weft::apps::dissect {

// FaultLog weighs the accusation of a Terminate. It is confirmed where the blamed message already has a finding that a
// receiver may take for this one: the violation is one. It is refuted where the octets contradict it, also where the
// message has another fault: the violation is the accuser's. Else it is not to be seen. A value without I/O; it
// remembers the last kMaxFaults findings of each side.
class FaultLog {
 public:
  static constexpr std::size_t kMaxFaults = 8;

  // on_frame takes a frame with findings, or a Terminate. It sets Finding::confirms and the verdicts. accused: of the
  // other side.
  void on_frame(Frame& frame, const Record& accused);

 private:
  struct Fault {
    EarlierFrame where;
    std::string_view requirement;
    Ending ending;
    std::string header;  // of DDP, as far as the capture has it
  };

  static constexpr std::size_t kMaxTerminates = 64;  // of a side

  struct Half final : Shown {
    bool has_shown(const rdmap::Terminate& fault) const override;
    bool has_shown_any() const override { return has_fatal; }
    void add_terminate(const rdmap::Terminate& terminate);

    std::vector<Fault> faults;                 // the last ones
    std::vector<rdmap::Terminate> terminates;  // what receivers answer to all of them, each once
    bool has_fatal = false;                    // a receiver ends the connection for one of them, or may
    std::optional<EarlierFrame> start;         // of a faulty startup frame
  };

  void keep(const Frame& frame, const Finding& finding);
  void weigh(Frame& frame, const Record& accused);
  void weigh_setup(const rdmap::TerminateMessage& message, Frame& frame, const Record& accused) const;
  struct Joined {
    bool has_code = false;     // the message has a fault for which the code of the Terminate is right
    bool has_earlier = false;  // an earlier message has the same fault as the one that the Terminate names
  };
  // Sets Finding::confirms if the message has a fault, whatever the code says.
  Joined join(const rdmap::TerminateMessage& message, const Half& accused, Finding& blame) const;

  std::array<Half, 2> halves_;  // by side
};

}  // namespace weft::apps::dissect
