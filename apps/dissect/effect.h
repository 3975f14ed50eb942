#pragma once

#include <string>

#include "rdmap/terminate.h"

namespace weft::apps::dissect {

// terminated: what a receiver does that answers with a Terminate.
inline std::string terminated(const rdmap::Terminate& terminate) {
  return "the receiver ends the connection: Terminate " + rdmap::describe(terminate);
}

}  // namespace weft::apps::dissect
