// RDMAC peers at permissive ends (RFC 5044 appendix C).
#include <gtest/gtest.h>

#include "mpa/crc32c.h"
#include "mpa/fpdu_writer.h"
#include "tests/sim/startup_side.h"

namespace weft::sim {
namespace {

// An octet with the version of DDP, one with that of RDMAP.
void expect_version(const Octets& fpdu, std::size_t at, std::uint8_t version) {
  EXPECT_EQ(fpdu[at] & 0x03, version);
  EXPECT_EQ(fpdu[at + 1] >> 6, version);
}

TEST(Rdmac, InitiatorAtAPermissiveResponder) {
  RecordProperty("proves", "MPA-C.1-02 MPA-C.2.3-02 MPA-C.2.4-01 MPA-C.2.4-02");
  rdmap::StreamConfig config;
  config.permissive = true;
  config.crc = false;
  Responder r(config);
  EXPECT_EQ(r.answer(mpa_record_octets("RDMAC-REQ")), mpa_record_octets("RDMAC-REP"));
  ASSERT_TRUE(r.established);
  EXPECT_EQ(r.established->revision, 0);
  EXPECT_TRUE(r.established->crc);
  EXPECT_TRUE(r.established->markers_tx);
  EXPECT_TRUE(r.established->markers_rx);

  // Both directions are of version 0 and have Markers.
  r.recvs.post(5);
  Octets send = record_octets("F03");
  send[0] &= 0xfc;
  send[1] &= 0x3f;
  mpa::FpduWriter peer(true, true);
  ASSERT_TRUE(peer.add(send, {}, true));
  r.receive(peer.buffers()[0], kNow);
  r.drain();
  ASSERT_EQ(r.completions.size(), 1u);
  EXPECT_EQ(r.completions[0].wr_id, 5u);
  ASSERT_EQ(r.stream.post_send({}), rdmap::PostResult::kOk);
  const Octets fpdu = r.transmit(kNow);
  ASSERT_EQ(fpdu.size(), 4u + mpa::fpdu_len(18));
  expect_version(fpdu, 6, 0);
}

TEST(Rdmac, ResponderAtAPermissiveInitiator) {
  RecordProperty("proves", "MPA-C.1-02 MPA-C.1-04 MPA-C.2.3-01 MPA-C.2.5-01 MPA-C.2.5-02");
  for (const bool crc : {false, true}) {
    rdmap::StreamConfig config;
    config.permissive = true;
    config.crc = crc;
    Initiator i(config);
    EXPECT_EQ(i.request[17], 1);
    i.receive(mpa_record_octets("RDMAC-REP"), kNow);
    i.drain();
    ASSERT_TRUE(i.established);
    const Octets fpdu = i.transmit(kNow);
    ASSERT_EQ(fpdu.size(), 4u + mpa::fpdu_len(18));
    EXPECT_EQ(Octets(fpdu.begin(), fpdu.begin() + 6), (Octets{0, 0, 0, 0, 0, 18}));
    expect_version(fpdu, 6, 0);
    const std::uint32_t value = mpa::crc32c(ConstBytes(fpdu).first(fpdu.size() - 4));
    Octets field;
    for (int shift = 0; shift < 32; shift += 8) field.push_back(static_cast<std::uint8_t>(value >> shift));
    EXPECT_EQ(Octets(fpdu.end() - 4, fpdu.end()), field);
  }
}

}  // namespace
}  // namespace weft::sim
