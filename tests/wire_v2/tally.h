#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/wire_v2/message.h"

namespace weft::wire_v2 {

// Tally counts, over many messages, which header types, error codes and properties of each draft occurred.
class Tally {
 public:
  void add(const Message& message);
  void add(const Tally& tally);
  // missing: the names that the draft defines and no message had, for example "RDMA2_GRANT" and "RBSIZ".
  std::vector<std::string> missing(Profile profile) const;
  // occurred: the names that a message had, with their numbers.
  const std::map<std::string, std::size_t>& occurred(Profile profile) const;
  std::size_t count(Profile profile, const std::string& name) const;

 private:
  std::map<Profile, std::map<std::string, std::size_t>> counts_;
};

}  // namespace weft::wire_v2
