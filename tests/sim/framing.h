#pragma once

// The ways in which two ends can agree to frame and to place: each is one instance of the suites that must hold in all.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rdmap/stream.h"

namespace weft::sim {

struct Framing {
  std::string name;
  rdmap::Placement placement = rdmap::Placement::kVerify;
  bool crc = true;
  bool markers_to_initiator = false;
  bool markers_to_responder = false;

  void apply(rdmap::StreamConfig& initiator, rdmap::StreamConfig& responder) const {
    for (rdmap::StreamConfig* config : {&initiator, &responder}) {
      config->placement = placement;
      config->direct_min_len = 0;
      config->crc = crc;
    }
    initiator.markers = markers_to_initiator;
    responder.markers = markers_to_responder;
  }
};

inline void PrintTo(const Framing& framing, std::ostream* out) {
  *out << framing.name;
}

inline std::vector<Framing> all_framings() {
  std::vector<Framing> all;
  for (const bool to_initiator : {false, true}) {
    for (const bool to_responder : {false, true}) {
      const std::string markers = std::string(to_initiator ? "Marked" : "Plain") + (to_responder ? "Marked" : "Plain");
      all.push_back({"Verify" + markers, rdmap::Placement::kVerify, true, to_initiator, to_responder});
      all.push_back({"Direct" + markers, rdmap::Placement::kDirect, true, to_initiator, to_responder});
      all.push_back({"NoCrc" + markers, rdmap::Placement::kDirect, false, to_initiator, to_responder});
    }
  }
  return all;
}

inline std::string framing_name(const ::testing::TestParamInfo<Framing>& info) {
  return info.param.name;
}

}  // namespace weft::sim
