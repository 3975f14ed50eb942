#pragma once

#include <map>
#include <optional>
#include <string>

#include "tests/wire_v2/message.h"

namespace weft::wire_v2 {

// LoneSends judges the Sends of ends whose peers may do anything, each of them alone: one of the drafts has to allow
// it. Once an end has sent a message that one draft alone allows, its later Sends are of this draft, until it asks with
// another probe. Messages of version 1 are not judged. It keeps a draft for each end, and no message.
class LoneSends {
 public:
  // judge: the fault of a Send, which begins with its rule.
  std::optional<std::string> judge(std::size_t end, const Bytes& octets);
  std::size_t num_judged() const { return num_judged_; }

 private:
  std::map<std::size_t, Profile> draft_of_;
  std::size_t num_judged_ = 0;
};

}  // namespace weft::wire_v2
