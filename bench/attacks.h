#pragma once

#include <vector>

#include "apps/nfs3/codec.h"
#include "bench/attackers.h"

namespace weft::bench {

// Handles of the tree that the attackers use.
struct Handles {
  nfs3::NfsFh3 root = {}, data = {}, many = {};
  std::vector<nfs3::NfsFh3> open, gone;
  // For the names of the attacks alone.
  static Handles none() { return {.open = std::vector<nfs3::NfsFh3>(1), .gone = std::vector<nfs3::NfsFh3>(1)}; }
};

// The attacks of exhaust.cc, one for each kind of resource.
std::vector<Attack> attacks(const Handles& of);

}  // namespace weft::bench
