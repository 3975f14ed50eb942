// RFC 5042 where it needs a look at the wire, or at every moment: two ends of which one is the test.
#include <random>
#include <string>

#include "tests/conformance/ddp_peer.h"

namespace weft::conformance {
namespace {

using rdmap::testing::FakeMemory;
using sim::Victim;

constexpr std::uint32_t kOurs = 0x100, kForeign = 0x200;

// Layer, type and code of the only thing the victim says, which is a Terminate.
std::string terminate_of(Victim& victim) {
  const auto said = victim.ulpdus();
  if (said.size() != 1 || !is_terminate(said[0])) return "none";
  char text[16];
  std::snprintf(text, sizeof(text), "%u/%u/%02x", said[0][18] >> 4, said[0][18] & 15u, unsigned{said[0][19]});
  return text;
}

// The octets that an initiator of this protection domain sends in a short conversation.
Octets wire_of(std::uint32_t pd) {
  rdmap::StreamConfig config;
  config.mpa_revision = 1;
  config.scope = {.pd = pd, .stream = pd};
  rdmap::testing::Side side(config);
  side.memory.add_simple(kOurs, pd, 0, 4096);
  TimePoint now{};
  side.stream.start_initiator({}, side.recvs, now);
  Octets wire = side.transmit(now);
  side.receive(sim::startup_frame(mpa::FrameKind::kReply, 1), now);
  for (const SendOp op : {SendOp::kSend, SendOp::kRdmaWrite, SendOp::kRdmaRead}) {
    SendWr wr;
    wr.op = op;
    wr.sg_list = {{0, 4096, ddp::Stag{kOurs}}};
    wr.remote_stag = ddp::Stag{9};
    EXPECT_EQ(side.stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
  }
  const Octets rest = side.transmit(now);
  EXPECT_GT(rest.size(), 8192u);
  wire.insert(wire.end(), rest.begin(), rest.end());
  return wire;
}

TEST(SecurityStream, TheProtectionDomainIsCheckedFirstAndNeverSent) {
  RecordProperty("proves", "SEC-2.2.4-01");
  // Another domain's, without the right, in range and not: the answer is always the same.
  for (const bool writable : {true, false}) {
    for (const std::uint64_t to : {std::uint64_t{0}, std::uint64_t{5000}, UINT64_MAX - 1}) {
      Victim victim;
      victim.memory.add(kForeign, {9, {}, 0, writable, writable, true, Octets(4096, 0xa5)});
      victim.feed(tagged({.last = true, .rsvd_ulp = kWriteControl, .stag = ddp::Stag{kForeign}, .to = to}, Octets(8)));
      EXPECT_EQ(terminate_of(victim), "1/1/02");
      EXPECT_EQ(victim.memory.regions[kForeign].octets, Octets(4096, 0xa5));
    }
  }
  EXPECT_EQ(wire_of(1), wire_of(77));
}

TEST(SecurityStream, AfterRevocationNoOctetOfTheBufferChanges) {
  RecordProperty("proves", "SEC-6.2.2-02");
  constexpr std::size_t kLen = 3000;
  constexpr std::uint64_t kRuns = 10000;
  // One Write in several segments; the memory is taken back before any octet of it, and the rest arrives in any pieces.
  Octets wire;
  for (std::size_t at = 0; at < kLen; at += 500) {
    const Octets fpdu = sim::frame_fpdu(tagged(
        {.last = at + 500 == kLen, .rsvd_ulp = kWriteControl, .stag = ddp::Stag{kOurs}, .to = at}, Octets(500, 1)));
    wire.insert(wire.end(), fpdu.begin(), fpdu.end());
  }
  std::size_t num_partly_placed = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Victim victim;
    victim.memory.add_simple(kOurs, 7, 0, kLen);
    const std::size_t revoked_at = random() % wire.size();
    victim.receive(ConstBytes(wire).first(revoked_at), victim.now, 1 + random() % 1000);
    victim.memory.regions[kOurs].valid = false;
    const Octets snapshot = victim.memory.regions[kOurs].octets;
    if (snapshot.front() == 1) ++num_partly_placed;
    victim.receive(ConstBytes(wire).subspan(revoked_at), victim.now, 1 + random() % 1000);
    ASSERT_EQ(victim.memory.regions[kOurs].octets, snapshot) << "taken back at octet " << revoked_at;
    // Direct placement may have had the last octet in place, and only its CRC was missing: then nothing was refused.
    ASSERT_EQ(terminate_of(victim), snapshot == Octets(kLen, 1) ? "none" : "1/1/00");
  }
  EXPECT_GT(num_partly_placed, kRuns / 2);
}

TEST(SecurityStream, ReadsAreCappedInBothDirections) {
  RecordProperty("proves", "SEC-6.4.3.3-02 SEC-2.2.8-01");
  // Inbound: two slots, and a third Request while nothing was answered.
  Victim victim;
  victim.memory.add(kOurs, {7, {}, 0, true, false, true, Octets(64, 3)});
  for (std::uint32_t msn = 1; msn <= 3; ++msn) {
    Octets body(28);
    body[15] = 8;                                      // RDMA Read Message Size
    body[18] = static_cast<std::uint8_t>(kOurs >> 8);  // Data Source STag
    victim.feed(untagged({.last = true, .rsvd_ulp = kReadRequestControl, .qn = 1, .msn = ddp::Msn{msn}}, body));
  }
  EXPECT_EQ(terminate_of(victim), "1/2/02");

  // Outbound: no more than ORD Requests are ever on the wire without their Responses.
  rdmap::StreamConfig config = Sender::config(0);
  config.ord = 2;
  Sender sender(config);
  sender.memory.add_simple(kOurs, 0, 0, 64);
  for (int i = 0; i < 7; ++i) sender.post_read(8, kOurs, 0);
  std::size_t num_open = 0, num_seen = 0;
  while (num_seen < 7) {
    const auto requests = sender.sent();
    num_open += requests.size();
    num_seen += requests.size();
    ASSERT_EQ(num_open, std::min<std::size_t>(2, num_open + 7 - num_seen));
    ASSERT_GT(num_open, 0u);
    sender.feed(tagged({.last = true, .rsvd_ulp = kReadResponseControl, .stag = ddp::Stag{kOurs}, .to = 0}, Octets(8)));
    --num_open;
  }
  EXPECT_TRUE(sender.sent().empty());
}

}  // namespace
}  // namespace weft::conformance
