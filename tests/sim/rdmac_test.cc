// RDMAC peers at permissive ends (RFC 5044 appendix C).
#include <gtest/gtest.h>

#include "mpa/crc32c.h"
#include "mpa/fpdu_writer.h"
#include "tests/sim/startup_side.h"

namespace weft::sim {
namespace {

// One octet has the version of DDP, the next one RDMAP's.
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

// Figure 14: which kinds of end work together, and on which terms.
TEST(Rdmac, TheThreeKindsOfEnd) {
  RecordProperty("proves", "MPA-C.1-01");
  struct Case {
    bool permissive;
    const char* request;
    bool established;
    std::uint8_t version;
    bool markers;
  };
  const Case cases[] = {{false, "RDMAC-REQ", false, 0, false},  // a Reply of Rev 1 that says no
                        {true, "RDMAC-REQ", true, 0, true},
                        {false, "REQ-PD5", true, 1, false},
                        {true, "REQ-PD5", true, 1, false}};
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.permissive << " " << c.request);
    rdmap::StreamConfig config;
    config.permissive = c.permissive;
    Responder r(config);
    const Octets reply = r.answer(mpa_record_octets(c.request));
    ASSERT_EQ(r.established.has_value(), c.established);
    EXPECT_EQ((reply[16] & 0x20) != 0, !c.established);
    EXPECT_EQ(reply[17], c.established && c.version == 0 ? 0 : 1);
    if (!c.established) continue;
    EXPECT_EQ(r.established->markers_rx, c.markers);
    EXPECT_EQ(r.established->markers_tx, c.markers);
    EXPECT_TRUE(r.established->crc);
    Octets write = record_octets("F01");
    write[0] = static_cast<std::uint8_t>((write[0] & 0xfc) | c.version);
    write[1] = static_cast<std::uint8_t>((write[1] & 0x3f) | c.version << 6);
    r.recvs.post(1);
    mpa::FpduWriter peer(true, c.markers);
    ASSERT_TRUE(peer.add(write, {}, true));
    r.receive(peer.buffers()[0], kNow);
    ASSERT_EQ(r.stream.post_send({}), rdmap::PostResult::kOk);
    expect_version(r.transmit(kNow), c.markers ? 6 : 2, c.version);
  }
}

}  // namespace
}  // namespace weft::sim
