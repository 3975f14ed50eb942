#pragma once

// A stream in MPA startup whose peer is the test itself.

#include <stdexcept>
#include <string>

#include "base/time.h"
#include "tests/sim/victim.h"
#include "tests/vectors/vector_file.h"

#include <gtest/gtest.h>

namespace weft::sim {

using rdmap::CloseReason;
using rdmap::LlpAction;
using rdmap::testing::Side;

inline const TimePoint kNow{};

struct Responder : Side {
  explicit Responder(const rdmap::StreamConfig& config = {}) : Side(config) { stream.start_responder(kNow); }
  // Takes a Request and accepts it; returns the Reply.
  Octets answer(ConstBytes request, ConstBytes private_data = {}) {
    receive(request, kNow);
    drain();
    stream.accept(private_data, recvs, 16, 16, 0, kNow);
    const Octets reply = transmit(kNow);
    drain();
    return reply;
  }
  void expect_closed_without_reply() {
    EXPECT_TRUE(transmit(kNow).empty());
    drain();
    ASSERT_EQ(closed.size(), 1u);
    EXPECT_EQ(closed[0].reason, CloseReason::kStartup);
    EXPECT_FALSE(closed[0].text.empty());
    EXPECT_EQ(stream.llp_action(), LlpAction::kClose);
  }
};

// Initiator has a Send, wr_id 1, posted before it connects.
struct Initiator : Side {
  explicit Initiator(const rdmap::StreamConfig& config = {}) : Side(config) {
    stream.start_initiator({}, recvs, kNow);
    rdmap::SendWr wr;
    wr.wr_id = 1;
    EXPECT_EQ(stream.post_send(wr), rdmap::PostResult::kOk);
    request = transmit(kNow);
  }
  Octets request;
};

inline Octets vector_octets(const std::string& file, const std::string& name, const std::string& key) {
  for (const auto& r : vectors::read_vector_file("tests/vectors/" + file))
    if (r.name == name) return vectors::from_hex(*r.find(key));
  throw std::runtime_error("no record " + name);
}
inline Octets record_octets(const std::string& name) {
  return vector_octets("rdmap-vectors.txt", name, "hex");
}
inline Octets mpa_record_octets(const std::string& name) {
  return vector_octets("mpa-vectors.txt", name, "stream");
}

}  // namespace weft::sim
