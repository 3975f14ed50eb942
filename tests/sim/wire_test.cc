// The octets that a stream sends, against the R and F records of rdmap-vectors.txt.
#include <gtest/gtest.h>

#include <numeric>

#include "ddp/segment.h"
#include "tests/sim/victim.h"
#include "tests/vectors/vector_file.h"

namespace weft::sim {
namespace {

using rdmap::SendOp;
using rdmap::SendWr;
using vectors::Record;

const Record& record(const std::string& name) {
  static const auto all = vectors::read_vector_file("tests/vectors/rdmap-vectors.txt");
  for (const Record& r : all)
    if (r.name == name) return r;
  throw std::runtime_error("no record " + name);
}
Octets hex(const std::string& name, const std::string& key = "hex") {
  return vectors::from_hex(record(name).find(key).value());
}
// The payload of an untagged (18) or tagged (14) segment.
Octets payload(const Octets& ulpdu) {
  return {ulpdu.begin() + ((ulpdu[0] & 0x80) != 0 ? 14 : 18), ulpdu.end()};
}

// Speaker is a stream whose FPDUs are as small as they can be: a MULPDU of 128, as the vectors assume.
struct Speaker : rdmap::testing::Side {
  static rdmap::StreamConfig config() {
    rdmap::StreamConfig config;
    config.mpa_revision = 1;
    config.scope = {.pd = 7, .stream = 1};
    config.fpdu_limit = 1;
    return config;
  }
  Speaker() : Side(config()) {
    stream.start_initiator({}, recvs, now);
    transmit(now);
    receive(startup_frame(mpa::FrameKind::kReply, 1), now);
  }
  void post(SendOp op, Octets data, std::uint32_t stag = 0, std::uint64_t to = 0, bool solicited = false) {
    SendWr wr;
    wr.op = op;
    wr.solicited = solicited;
    wr.inline_data = std::move(data);
    wr.remote_stag = ddp::Stag{stag};
    wr.remote_to = to;
    ASSERT_EQ(stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
  }
  void post_read(std::uint32_t sink, std::uint64_t sink_to, std::uint32_t len, std::uint32_t src,
                 std::uint64_t src_to) {
    SendWr wr;
    wr.op = SendOp::kRdmaRead;
    if (len > 0) wr.sg_list = {{sink_to, len, ddp::Stag{sink}}};
    wr.remote_stag = ddp::Stag{src};
    wr.remote_to = src_to;
    ASSERT_EQ(stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
  }
  TimePoint now{};
};

TEST(Wire, SendsOfEveryKind) {
  RecordProperty("proves", "RDMAP-4.1-03 RDMAP-4.1-16 RDMAP-4.1-17 RDMAP-5.3-09");
  Speaker s;
  s.post(SendOp::kSend, payload(hex("R01")));
  s.post(SendOp::kSendInvalidate, payload(hex("R02")), 0x11223344);
  s.post(SendOp::kSend, payload(hex("R03")), 0, 0, true);
  s.post(SendOp::kSendInvalidate, payload(hex("R04")), 0xcafe0042, 0, true);
  s.post(SendOp::kSend, {});
  s.post(SendOp::kSend, {});
  Octets long_payload(130);
  std::iota(long_payload.begin(), long_payload.end(), std::uint8_t{0});
  s.post(SendOp::kSend, long_payload);
  s.post(SendOp::kSendInvalidate, Octets(long_payload.begin(), long_payload.begin() + 114), 0x3c4d5e03);
  const auto sent = deframe(s.transmit(s.now));
  ASSERT_EQ(sent.size(), 10u);
  EXPECT_EQ(sent[0], hex("R01"));
  EXPECT_EQ(sent[1], hex("R02"));
  EXPECT_EQ(sent[2], hex("R03"));
  EXPECT_EQ(sent[3], hex("R04"));
  EXPECT_EQ(sent[6], hex("R06", "seg1.hex"));
  EXPECT_EQ(sent[7], hex("R06", "seg2.hex"));
  EXPECT_EQ(sent[8], hex("R07", "seg1.hex"));
  EXPECT_EQ(sent[9], hex("R07", "seg2.hex"));
  Speaker zero;
  zero.post(SendOp::kSend, {});
  EXPECT_EQ(zero.transmit(zero.now), hex("F03", "fpdu.hex"));
}

TEST(Wire, Writes) {
  RecordProperty("proves", "RDMAP-4.1-13 RDMAP-4.3-01 RDMAP-5.1-01");
  Speaker s;
  s.post(SendOp::kRdmaWrite, payload(hex("R08")), 0x1a2b3c01, 0x1000);
  Octets two = payload(hex("R09", "seg1.hex"));
  const Octets rest = payload(hex("R09", "seg2.hex"));
  two.insert(two.end(), rest.begin(), rest.end());
  s.post(SendOp::kRdmaWrite, two, 0x1a2b3c01, 0x1101);
  s.post(SendOp::kRdmaWrite, {}, 1, 0);
  const auto sent = deframe(s.transmit(s.now));
  ASSERT_EQ(sent.size(), 4u);
  EXPECT_EQ(sent[0], hex("R08"));
  EXPECT_EQ(sent[1], hex("R09", "seg1.hex"));
  EXPECT_EQ(sent[2], hex("R09", "seg2.hex"));
  EXPECT_EQ(sent[3], hex("R10"));
  Speaker zero;
  zero.post(SendOp::kRdmaWrite, {}, 1, 0);
  EXPECT_EQ(zero.transmit(zero.now), hex("F01", "fpdu.hex"));
}

TEST(Wire, ReadRequests) {
  RecordProperty("proves", "RDMAP-3.2-07 RDMAP-4.4-01 RDMAP-5.2.1-06");
  Speaker s;
  s.post_read(0x6f708106, 0x8000, 8192, 0x2b3c4d02, 0x40000);
  EXPECT_EQ(deframe(s.transmit(s.now)), (std::vector<Octets>{hex("R11")}));
  Speaker zero;
  zero.post_read(0, 0, 0, 1, 0);
  EXPECT_EQ(zero.transmit(zero.now), hex("F02", "fpdu.hex"));
}

TEST(Wire, ReadResponses) {
  RecordProperty("proves", "RDMAP-4.1-15 RDMAP-4.5-01 RDMAP-5.2.1-15 RDMAP-5.2.2-02 RDMAP-5.2.2-07");
  Speaker s;
  Octets source = payload(hex("R14"));
  s.memory.add(1, {7, {}, 0, true, false, true, source});
  for (const char* seg : {"seg1.hex", "seg2.hex", "seg3.hex"}) {
    const Octets part = payload(hex("R15", seg));
    source.insert(source.end(), part.begin(), part.end());
  }
  s.memory.add(2, {7, {}, 0, true, false, true, source});
  const auto request = [&](std::uint32_t msn, std::uint32_t sink, std::uint64_t to, std::uint32_t size,
                           std::uint32_t src, std::uint64_t src_to) {
    Octets ulpdu(18);
    ddp::UntaggedHeader h;
    h.rsvd_ulp = 0x41;
    h.qn = 1;
    h.msn = {msn};
    ddp::emit_header(h, std::span(ulpdu).first<18>());
    const auto body = rdmap::emit_read_request_header({ddp::Stag{sink}, to, size, ddp::Stag{src}, src_to});
    ulpdu.insert(ulpdu.end(), body.begin(), body.end());
    s.receive(frame_fpdu(ulpdu), s.now);
  };
  request(1, 0x6f708106, 0x8000, 8, 1, 0);
  request(2, 0x6f708106, 0x8000, 300, 2, 8);
  request(3, 1, 0, 0, 1, 0);
  const auto sent = deframe(s.transmit(s.now));
  ASSERT_EQ(sent.size(), 5u);
  EXPECT_EQ(sent[0], hex("R14"));
  EXPECT_EQ(sent[1], hex("R15", "seg1.hex"));
  EXPECT_EQ(sent[2], hex("R15", "seg2.hex"));
  EXPECT_EQ(sent[3], hex("R15", "seg3.hex"));
  EXPECT_EQ(sent[4], hex("R16"));
}

}  // namespace
}  // namespace weft::sim
