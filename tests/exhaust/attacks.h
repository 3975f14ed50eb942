#pragma once

#include <vector>

#include "apps/nfs3/codec.h"
#include "tests/exhaust/attack.h"

namespace weft::exhaust {

// Handles of the tree that the attackers use.
struct Handles {
  nfs3::NfsFh3 root = {}, data = {}, many = {};
  std::vector<nfs3::NfsFh3> open, gone;
  // For the names of the attacks alone.
  static Handles none() { return {.open = std::vector<nfs3::NfsFh3>(1), .gone = std::vector<nfs3::NfsFh3>(1)}; }
};

// The attacks, at least one for each kind of resource that peers hold of `weft serve`. The numbers of connections are
// for a server with the defaults.
std::vector<Attack> attacks(const Handles& of);

}  // namespace weft::exhaust
