// The evil peer: one test for each way to break a rule of MPA, DDP or RDMAP. Each is tried whole and in pieces, as the
// first FPDU and as a later one, with work outstanding: the answer is one Terminate, octet for octet; no memory
// changes; every request and every receive that was taken ends once.
#include <gtest/gtest.h>

#include <ostream>
#include <set>

#include "tests/conformance/rdmap_peer.h"

namespace weft::sim {
namespace {

using conformance::put;
using conformance::ramp;
using conformance::read_request;
using conformance::read_response;
using conformance::send;
using conformance::tagged;
using conformance::terminate;
using conformance::terminate_for;
using conformance::untagged;
using conformance::work;
using conformance::write;
using rdmap::Completion;
using rdmap::SendOp;
using rdmap::WorkOp;
using rdmap::WorkStatus;

constexpr std::uint32_t kWritable = 0x1a2b3c01, kReadable = 0x2b3c4d02, kOwn = 0x3c4d5e03, kOtherPd = 0x4d5e6f04,
                        kOtherStream = 0x5e6f7005, kSink = 0x6f708106, kStale = 0x70819207, kShared = 0x8192a308,
                        kTop = 0x92a3b409, kInbox = 0x11;
constexpr std::uint64_t kBase = 0x1000;
constexpr std::uint32_t kRecvLen = 64;

enum class Needs : std::uint8_t {
  kNothing,
  kSpeech,  // the victim has to have sent its Read (16 octets into kSink at kBase)
};

struct Break {
  const char* name;
  std::vector<Octets> before;              // good ULPDUs that it takes to get there
  Octets bad;                              // a ULPDU, or an FPDU where `raw`
  Octets answer;                           // the Terminate
  WorkStatus recv = WorkStatus::kFlushed;  // how the receive ends that the bad message had, if it had one
  Needs needs = Needs::kNothing;
  WorkStatus read = WorkStatus::kFlushed;  // how that Read ends
  bool raw = false;
};
void PrintTo(const Break& b, std::ostream* out) {
  *out << b.name;
}

// Refused with DDP's or RDMAP's headers of the bad message itself.
Break refused(const char* name, Octets bad, unsigned layer_etype, unsigned code, std::vector<Octets> before = {},
              WorkStatus recv = WorkStatus::kFlushed) {
  Octets answer = terminate_for(bad, layer_etype, code);
  return {name, std::move(before), std::move(bad), std::move(answer), recv};
}
Break refused_read(const char* name, Octets bad, unsigned code) {
  Octets answer = terminate_for(bad, 0x01, code, true);
  return {name, {}, std::move(bad), std::move(answer)};
}
Break refused_response(const char* name, Octets bad, unsigned layer_etype, unsigned code,
                       WorkStatus read = WorkStatus::kFatal, std::vector<Octets> before = {}) {
  Break b = refused(name, std::move(bad), layer_etype, code, std::move(before));
  b.needs = Needs::kSpeech;
  b.read = read;
  return b;
}
Break bare(const char* name, Octets bad, unsigned layer_etype, unsigned code, bool raw) {
  Octets answer = terminate({static_cast<std::uint8_t>(layer_etype), static_cast<std::uint8_t>(code), 0, 0});
  Break b{name, {}, std::move(bad), std::move(answer)};
  b.raw = raw;
  return b;
}
Octets with(Octets octets, std::size_t at, unsigned value) {
  octets.at(at) = static_cast<std::uint8_t>(value);
  return octets;
}

const Octets kGoodWrite = write(kWritable, kBase, ramp(8));
const Octets kGoodSend = send(1, ramp(8));
const Octets kGoodRead = read_request(1, 1, 0, 8, kReadable, kBase);

std::vector<Break> mpa_breaks() {
  Octets bad_crc = frame_fpdu(kGoodSend), bad_payload = frame_fpdu(kGoodWrite), bad_length = frame_fpdu(kGoodWrite);
  bad_crc.back() ^= 0x01;
  bad_payload[18] ^= 0x80;
  bad_length[1] ^= 0x04;  // the CRC is then looked for elsewhere
  bad_length.resize(64, 0);
  return {bare("CrcOfASend", bad_crc, 0x20, 0x02, true), bare("PayloadOfAWrite", bad_payload, 0x20, 0x02, true),
          bare("UlpduLength", bad_length, 0x20, 0x02, true)};
}

std::vector<Break> ddp_breaks() {
  const Octets half = send(1, ramp(30), false);
  std::vector<Break> all = {
      bare("RuntTagged", Octets(kGoodWrite.begin(), kGoodWrite.begin() + 13), 0x10, 0x00, false),
      bare("RuntUntagged", Octets(kGoodSend.begin(), kGoodSend.begin() + 17), 0x10, 0x00, false),
      refused("TaggedVersion0", with(kGoodWrite, 0, 0xc0), 0x11, 0x04),
      refused("TaggedVersion2", with(kGoodWrite, 0, 0xc2), 0x11, 0x04),
      refused("TaggedVersion3", with(kGoodWrite, 0, 0xc3), 0x11, 0x04),
      refused("UntaggedVersion0", with(kGoodSend, 0, 0x40), 0x12, 0x06),
      refused("UntaggedVersion2", with(kGoodSend, 0, 0x42), 0x12, 0x06),
      refused("UntaggedVersion3", with(kGoodSend, 0, 0x43), 0x12, 0x06),
      refused("Qn4", untagged(0x43, 4, 1, ramp(8)), 0x12, 0x01),
      refused("QnLargest", untagged(0x43, 0xffffffff, 1, ramp(8)), 0x12, 0x01),
      refused("QnInTheHighOctets", untagged(0x43, 0x01000000, 1, ramp(8)), 0x12, 0x01),
      refused("SendMsn0", send(0, ramp(8)), 0x12, 0x03),
      refused("SendMsnGap", send(2, ramp(8)), 0x12, 0x03),
      refused("SendMsnFarAhead", send(0x80000001, ramp(8)), 0x12, 0x03),
      refused("SendMsnAgain", kGoodSend, 0x12, 0x03, {kGoodSend}),
      refused("SendMsnChangesWithinAMessage", send(2, ramp(8), true, 30), 0x12, 0x03, {half}),
      refused("ReadMsnGap", read_request(2, 1, 0, 8, kReadable, kBase), 0x12, 0x03),
      refused("ReadMsnAgain", read_request(1, 1, 0, 0, kReadable, kBase), 0x12, 0x03,
              {read_request(1, 1, 0, 0, kReadable, kBase)}),
      refused("MoOfAFirstSegment", send(1, ramp(8), true, 1), 0x12, 0x04),
      refused("MoGap", send(1, ramp(8), true, 31), 0x12, 0x04, {half}),
      refused("MoOverlap", send(1, ramp(8), true, 29), 0x12, 0x04, {half}),
      refused("MoLargest", send(1, ramp(8), true, 0xffffffff), 0x12, 0x04, {half}),
      refused("NoBuffer", send(4, ramp(8)), 0x12, 0x02, {send(1, {}), send(2, {}), send(3, {})}),
      refused("NoBufferForNothing", send(4, {}), 0x12, 0x02, {send(1, {}), send(2, {}), send(3, {})}),
      refused("TooLong", send(1, ramp(kRecvLen + 1)), 0x12, 0x05, {}, WorkStatus::kLocalLength),
      refused("TooLongInItsSecondSegment", send(1, ramp(kRecvLen - 29), true, 30), 0x12, 0x05, {half},
              WorkStatus::kLocalLength),
      refused("StagUnknown", write(0x999, kBase, ramp(8)), 0x11, 0x00),
      refused("StagOneBitOff", write(kWritable ^ 0x80000000, kBase, ramp(8)), 0x11, 0x00),
      refused("StagStale", write(kStale, kBase, ramp(8)), 0x11, 0x00),
      refused("StagOfAnotherPd", write(kOtherPd, kBase, ramp(8)), 0x11, 0x02),
      refused("StagOfAnotherStream", write(kOtherStream, kBase, ramp(8)), 0x11, 0x02),
      refused("StagWithoutTheRight", write(kReadable, kBase, ramp(8)), 0x11, 0x00),
      refused("StagOfOurOwn", write(kInbox, 0, ramp(8)), 0x11, 0x00),
      refused("ToBelowTheBase", write(kWritable, kBase - 1, ramp(8)), 0x11, 0x01),
      refused("ToBehindTheEnd", write(kWritable, kBase + 64, ramp(1)), 0x11, 0x01),
      refused("ToAndLengthBeyondTheEnd", write(kWritable, kBase + 57, ramp(8)), 0x11, 0x01),
      refused("ToWraps", write(kTop, ~std::uint64_t{0} - 6, ramp(8)), 0x11, 0x03),
      refused("SecondSegmentBeyondTheEnd", write(kWritable, kBase + 60, ramp(8)), 0x11, 0x01,
              {write(kWritable, kBase + 52, Octets(8, 0xa5), false)})};
  return all;
}

std::vector<Break> rdmap_breaks() {
  std::vector<Break> all = {
      refused("Rv0Untagged", with(kGoodSend, 1, 0x03), 0x02, 0x05),
      refused("Rv2Untagged", with(kGoodSend, 1, 0x83), 0x02, 0x05),
      refused("Rv3Untagged", with(kGoodSend, 1, 0xc3), 0x02, 0x05),
      refused("Rv0Tagged", with(kGoodWrite, 1, 0x00), 0x02, 0x05),
      refused("Rv2Tagged", with(kGoodWrite, 1, 0x80), 0x02, 0x05),
      refused("Rv3Tagged", with(kGoodWrite, 1, 0xc0), 0x02, 0x05),
      refused("Rv2ReadRequest", with(kGoodRead, 1, 0x81), 0x02, 0x05),
      refused("OpcodeC", untagged(0x4c, 0, 1, ramp(8)), 0x02, 0x06),
      refused("OpcodeD", untagged(0x4d, 1, 1, ramp(8)), 0x02, 0x06),
      refused("OpcodeE", untagged(0x4e, 2, 1, ramp(8)), 0x02, 0x06),
      refused("OpcodeF", untagged(0x4f, 0, 1, ramp(8)), 0x02, 0x06),
      refused("OpcodeFTagged", tagged(0x4f, kWritable, kBase, ramp(8)), 0x02, 0x06),
      refused("WriteUntagged", untagged(0x40, 0, 1, ramp(8)), 0x02, 0x06),
      refused("ReadRequestTagged", tagged(0x41, kWritable, kBase, ramp(28)), 0x02, 0x06),
      refused("ReadResponseUntagged", untagged(0x42, 0, 1, ramp(8)), 0x02, 0x06),
      refused("SendTagged", tagged(0x43, kWritable, kBase, ramp(8)), 0x02, 0x06),
      refused("SendInvalidateTagged", tagged(0x44, kWritable, kBase, ramp(8)), 0x02, 0x06),
      refused("SendSeTagged", tagged(0x45, kWritable, kBase, ramp(8)), 0x02, 0x06),
      refused("SendSeInvalidateTagged", tagged(0x46, kWritable, kBase, ramp(8)), 0x02, 0x06),
      refused("TerminateTagged", tagged(0x47, kWritable, kBase, ramp(4)), 0x02, 0x06),
      refused("SendOnQn1", untagged(0x43, 1, 1, ramp(8)), 0x02, 0x06),
      refused("SendOnQn2", untagged(0x43, 2, 1, ramp(8)), 0x02, 0x06),
      refused("SendInvalidateOnQn1", untagged(0x44, 1, 1, ramp(8)), 0x02, 0x06),
      refused("SendSeOnQn2", untagged(0x45, 2, 1, ramp(8)), 0x02, 0x06),
      refused("ReadRequestOnQn0", with(kGoodRead, 9, 0), 0x02, 0x06),
      refused("ReadRequestOnQn2", with(kGoodRead, 9, 2), 0x02, 0x06),
      refused("TerminateOnQn0", untagged(0x47, 0, 1, Octets(4)), 0x02, 0x06),
      refused("TerminateOnQn1", untagged(0x47, 1, 1, Octets(4)), 0x02, 0x06),
      refused("SendKindChanges", send(1, ramp(8), true, 30, 0x45), 0x02, 0x06, {send(1, ramp(30), false)}),
      refused("InvalidateUnknown", send(1, ramp(8), true, 0, 0x44, 0x999), 0x02, 0x09, {},
              WorkStatus::kRemoteInvalidRequest),
      refused("InvalidateStale", send(1, ramp(8), true, 0, 0x46, kStale), 0x02, 0x09, {},
              WorkStatus::kRemoteInvalidRequest),
      refused("InvalidateShared", send(1, ramp(8), true, 0, 0x44, kShared), 0x02, 0x09, {},
              WorkStatus::kRemoteInvalidRequest),
      refused("InvalidateOfAnotherPd", send(1, ramp(8), true, 0, 0x44, kOtherPd), 0x01, 0x09, {},
              WorkStatus::kRemoteInvalidRequest),
      refused("InvalidateOfAnotherStream", send(1, {}, true, 0, 0x46, kOtherStream), 0x01, 0x09, {},
              WorkStatus::kRemoteInvalidRequest)};
  return all;
}

std::vector<Break> read_breaks() {
  const auto source = [](std::uint32_t stag, std::uint64_t to, std::uint32_t size) {
    return read_request(1, 1, 0, size, stag, to);
  };
  const auto pending = [](std::uint32_t msn) { return read_request(msn, 1, 0, 8, kReadable, kBase); };
  const Octets shorter(kGoodRead.begin(), kGoodRead.end() - 1);
  Octets longer = kGoodRead;
  longer.push_back(0);
  std::vector<Break> all = {
      refused_read("SourceUnknown", source(0x999, kBase, 8), 0x00),
      refused_read("SourceStale", source(kStale, kBase, 8), 0x00),
      refused_read("SourceBelowTheBase", source(kReadable, kBase - 1, 8), 0x01),
      refused_read("SourceBeyondTheEnd", source(kReadable, kBase + 57, 8), 0x01),
      refused_read("SourceOf4GiB", source(kReadable, kBase, 0xffffffff), 0x01),
      refused_read("SourceWithoutTheRight", source(kWritable, kBase, 8), 0x02),
      refused_read("SourceOfAnotherStream", source(kOtherStream, kBase, 8), 0x03),
      refused_read("SourceOfAnotherPd", source(kOtherPd, kBase, 8), 0x03),
      refused_read("SourceWraps", source(kTop, ~std::uint64_t{0} - 6, 8), 0x04),
      refused("ReadRequestTooShort", shorter, 0x02, 0x07),
      refused("ReadRequestEmpty", Octets(kGoodRead.begin(), kGoodRead.begin() + 18), 0x02, 0x07),
      refused("ReadRequestTooLong", longer, 0x12, 0x05),
      refused("ReadRequestNotLast", with(kGoodRead, 0, 0x01), 0x02, 0x07),
      refused("MoreReadsThanIrd", pending(3), 0x12, 0x02, {pending(1), pending(2)}),
      refused_response("ResponseIntoAnotherStag", read_response(kWritable, kBase, ramp(16)), 0x11, 0x00),
      refused_response("ResponseElsewhere", read_response(kSink, kBase + 1, ramp(16)), 0x11, 0x01),
      refused_response("ResponseTooLong", read_response(kSink, kBase, ramp(17)), 0x11, 0x01),
      refused_response("ResponseTooShort", read_response(kSink, kBase, ramp(15)), 0x11, 0x01),
      refused_response("ResponseOfNothing", read_response(kSink, kBase, {}), 0x11, 0x01),
      refused_response("ResponseWraps", read_response(kSink, ~std::uint64_t{0} - 6, ramp(16)), 0x11, 0x03),
      refused_response("ResponseWithAGap", read_response(kSink, kBase + 9, ramp(7)), 0x11, 0x01, WorkStatus::kFatal,
                       {read_response(kSink, kBase, Octets(8, 0xa5), false)}),
      refused_response("WriteWithinAResponse", kGoodWrite, 0x02, 0x06, WorkStatus::kFlushed,
                       {read_response(kSink, kBase, Octets(8, 0xa5), false)}),
      refused_response("ResponseWithinAWrite", read_response(kSink, kBase, ramp(16)), 0x02, 0x06, WorkStatus::kFlushed,
                       {write(kWritable, kBase, Octets(8, 0xa5), false)})};
  Break unasked = refused("ResponseToNothing", read_response(kSink, kBase, ramp(16)), 0x11, 0x00);
  all.push_back(std::move(unasked));
  return all;
}

std::vector<Break> all_breaks() {
  std::vector<Break> all;
  for (auto some : {mpa_breaks(), ddp_breaks(), rdmap_breaks(), read_breaks()})
    for (Break& b : some) all.push_back(std::move(b));
  return all;
}

class EvilPeer : public ::testing::TestWithParam<Break> {
 protected:
  static void set_up(Victim& v) {
    const auto add = [&](std::uint32_t stag, std::uint32_t pd, std::vector<std::uint32_t> streams, std::uint64_t base,
                         bool read, bool write) {
      v.memory.add(stag, {pd, std::move(streams), base, read, write, true, Octets(64, 0xa5)});
    };
    add(kWritable, 7, {}, kBase, false, true);
    add(kReadable, 7, {}, kBase, true, false);
    add(kOwn, 7, {1}, kBase, true, true);
    add(kOtherPd, 9, {}, kBase, true, true);
    add(kOtherStream, 7, {2}, kBase, true, true);
    add(kSink, 7, {}, kBase, false, false);
    add(kStale, 7, {1}, kBase, true, true);
    add(kShared, 7, {1, 2}, kBase, true, true);
    add(kTop, 7, {}, ~std::uint64_t{0} - 79, true, true);
    v.memory.regions[kStale].valid = false;
    v.memory.add(kInbox, {7, {}, 0, false, false, true, Octets(3 * kRecvLen + 16, 0xa5)});
    for (std::uint64_t i = 0; i < 3; ++i) v.recvs.post(100 + i, {{i * kRecvLen, kRecvLen, ddp::Stag{kInbox}}});
  }
  static std::vector<Octets> snapshot(const Victim& v) {
    std::vector<Octets> all;
    for (const auto& [stag, region] : v.memory.regions) {
      all.push_back(region.octets);
      all.push_back(Octets(1, region.valid));
    }
    return all;
  }
};

TEST_P(EvilPeer, IsToldOnceAndEverythingEndsOnce) {
  const Break& b = GetParam();
  for (const std::size_t chunk : {SIZE_MAX, std::size_t{1}, std::size_t{7}}) {
    for (const Heard heard : {Heard::kNothing, Heard::kOneFpdu, Heard::kSeveral}) {
      if (b.needs == Needs::kSpeech && heard == Heard::kNothing) continue;
      SCOPED_TRACE(testing::Message() << "in chunks of " << chunk << ", heard " << static_cast<int>(heard));
      Victim v(chunk, heard);
      set_up(v);
      const bool read = b.needs == Needs::kSpeech;
      // Outstanding: a Read that is on the wire where the case needs one, and Sends that have not left.
      if (read) {
        ASSERT_EQ(v.stream.post_send(work(SendOp::kRdmaRead, 1, {{kBase, 16, ddp::Stag{kSink}}}, 0x77, 0)),
                  rdmap::PostResult::kOk);
        ASSERT_EQ(v.ulpdus().size(), 1u);
      }
      for (const Octets& ulpdu : b.before) v.feed(ulpdu);
      v.drain();
      const std::size_t num_good = v.completions.size();
      const std::size_t num_taken = v.recvs.num_taken;
      for (const std::uint64_t id : {2u, 3u})
        ASSERT_EQ(v.stream.post_send(work(SendOp::kSend, id, {{0, 8, ddp::Stag{kInbox}}})), rdmap::PostResult::kOk);
      const auto memory = snapshot(v);

      if (b.raw) {
        v.receive(b.bad, v.now, chunk);
      } else {
        v.feed(b.bad);
      }
      v.feed(kGoodWrite);  // later octets go nowhere
      const auto sent = v.ulpdus();
      ASSERT_EQ(sent.size(), 1u) << "one Terminate and nothing else";
      EXPECT_EQ(sent[0], b.answer);
      EXPECT_FALSE(v.stream.wants_tx());

      ASSERT_EQ(v.stream.llp_action(), rdmap::LlpAction::kShutdownWrite);
      v.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
      v.stream.on_rx_eof(v.now);
      v.drain();
      EXPECT_TRUE(snapshot(v) == memory) << "memory or an STag changed";
      ASSERT_EQ(v.closed.size(), 1u);
      EXPECT_EQ(v.closed[0].reason, rdmap::CloseReason::kTerminateSent);
      EXPECT_EQ(v.stream.llp_action(), rdmap::LlpAction::kClose);

      std::vector<std::uint64_t> requests;
      std::set<std::uint64_t> recvs;
      for (std::size_t i = 0; i < v.completions.size(); ++i) {
        const Completion& c = v.completions[i];
        if (c.op != WorkOp::kRecv) {
          requests.push_back(c.wr_id);
          EXPECT_EQ(c.status, c.op == WorkOp::kRdmaRead ? b.read : WorkStatus::kFlushed);
        } else {
          EXPECT_TRUE(recvs.insert(c.wr_id).second);
          EXPECT_EQ(c.status, i < num_good ? WorkStatus::kSuccess : b.recv);
        }
        EXPECT_EQ(c.terminate.has_value(), i >= num_good);
      }
      EXPECT_EQ(requests, read ? (std::vector<std::uint64_t>{1, 2, 3}) : (std::vector<std::uint64_t>{2, 3}));
      EXPECT_EQ(recvs.size(), v.recvs.num_taken) << "a receive that was taken ends, others stay with their queue";
      EXPECT_LE(v.recvs.num_taken, num_taken + 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rule, EvilPeer, ::testing::ValuesIn(all_breaks()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weft::sim
