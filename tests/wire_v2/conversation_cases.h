#pragma once

#include <vector>

#include "tests/wire_v2/talk.h"

namespace weft::wire_v2 {

// Case: two conversations that differ in little: one keeps the rule, the other breaks it and no other.
struct Case {
  const char* name = nullptr;
  Profile profile = Profile::kCel05;
  const char* rule = nullptr;
  void (*healthy)(Talk&) = nullptr;
  void (*broken)(Talk&) = nullptr;
};

std::vector<Case> shared_cases();
std::vector<Case> cel05_cases();
std::vector<Case> wg07_cases();

}  // namespace weft::wire_v2
