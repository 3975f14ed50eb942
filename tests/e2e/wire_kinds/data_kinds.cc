#include "kinds.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "conversation.h"

namespace weft::e2e {

namespace {

using rdmap::SendOp;
using rdmap::SendWr;

constexpr std::uint32_t kLocal = 0x11000001;   // the posting end's own memory
constexpr std::uint32_t kRemote = 0x22000002;  // the memory of the other end that it reads and writes
constexpr std::uint64_t kLocalBase = 0x1000;
constexpr std::uint64_t kRemoteBase = 0xfedcba9876540000;  // every octet of a TO differs from its neighbours
constexpr std::size_t kRegionLen = 256 * 1024;

// Cuts: how long the segments of a long message have to be, by hand from RFC 5044 section 4.5 (MULPDU) and the header
// lengths of RFC 5041.
struct Cuts {
  std::vector<std::size_t> tagged;    // 14 octets of header
  std::vector<std::size_t> untagged;  // 18 octets of header
};

// Script has one end post every kind of message; the other end answers Reads and does nothing else.
class Script {
 public:
  Script(Conversation& c, End end, Cuts cuts) : c_(c), end_(end), cuts_(std::move(cuts)) {
    for (End side : {end_, other(end_)}) {
      auto& region = c_.side(side).memory.add_simple(side == end_ ? kLocal : kRemote, 7,
                                                     side == end_ ? kLocalBase : kRemoteBase, kRegionLen);
      region.octets = pattern(side == end_ ? 3 : 4, kRegionLen);
    }
    num_before_ = c_.side(end_).completions.size();
  }

  void run() {
    sends();
    writes();
    reads();
    immediates();
    atomics();
    c_.check_success(end_, num_before_ + num_posted_);
  }

 private:
  static Octets part(const Octets& octets, std::size_t offset, std::size_t len) {
    const auto begin = octets.begin() + static_cast<std::ptrdiff_t>(offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(len)};
  }
  Octets local(std::size_t offset, std::size_t len) {
    return part(c_.side(end_).memory.regions[kLocal].octets, offset, len);
  }
  Octets remote(std::size_t offset, std::size_t len) {
    return part(c_.side(other(end_)).memory.regions[kRemote].octets, offset, len);
  }
  static std::size_t sum(const std::vector<std::size_t>& lens) {
    std::size_t total = 0;
    for (std::size_t len : lens) total += len;
    return total;
  }

  void post(SendWr wr) {
    wr.wr_id = ++num_posted_;
    c_.post(end_, std::move(wr));
  }
  static SendWr request(SendOp op, std::size_t offset, std::size_t len) {
    SendWr wr;
    wr.op = op;
    if (len > 0) wr.sg_list = {{kLocalBase + offset, static_cast<std::uint32_t>(len), {kLocal}}};
    return wr;
  }

  // A Send of the lengths given, one segment each.
  void send_kind(std::uint8_t opcode, const std::vector<std::size_t>& lens) {
    const bool invalidates = opcode == kSendInvalidate || opcode == kSendSeInvalidate;
    const std::uint32_t stag = invalidates ? 0x33000000 + send_msn_ : 0;
    if (invalidates) {
      auto& region = c_.side(other(end_)).memory.add_simple(stag, 7, 0, 8);
      region.streams = {1};
    }
    const std::size_t offset = 64 * send_msn_;
    SendWr wr = request(invalidates ? SendOp::kSendInvalidate : SendOp::kSend, offset, sum(lens));
    wr.solicited = opcode == kSendSe || opcode == kSendSeInvalidate;
    wr.remote_stag = {stag};
    std::size_t mo = 0;
    for (std::size_t i = 0; i < lens.size(); ++i) {
      c_.expect(end_, send(opcode, stag, send_msn_, static_cast<std::uint32_t>(mo), local(offset + mo, lens[i]),
                           i + 1 == lens.size()));
      mo += lens[i];
    }
    ++send_msn_;
    c_.side(other(end_)).recvs.post(0, {{kRemoteBase + kRegionLen / 2, kRegionLen / 2, {kRemote}}});
    post(std::move(wr));
    c_.pump();
  }

  void sends() {
    // 5 to 8 octets: every length of PAD.
    send_kind(kSend, {5});
    send_kind(kSendSe, {6});
    send_kind(kSendInvalidate, {7});
    send_kind(kSendSeInvalidate, {8});
    for (std::uint8_t opcode : {kSend, kSendSe, kSendInvalidate, kSendSeInvalidate}) {
      send_kind(opcode, {0});
      send_kind(opcode, cuts_.untagged);
    }
  }

  void write_kind(std::uint64_t offset, const std::vector<std::size_t>& lens) {
    SendWr wr = request(SendOp::kRdmaWrite, offset, sum(lens));
    wr.remote_stag = {kRemote};
    wr.remote_to = kRemoteBase + offset;
    for (std::size_t i = 0; i < lens.size(); ++i) {
      c_.expect(end_, tagged(kWrite, kRemote, kRemoteBase + offset, local(offset, lens[i]), i + 1 == lens.size()));
      offset += lens[i];
    }
    post(std::move(wr));
    c_.pump();
  }

  void writes() {
    write_kind(0x1001, {1});
    write_kind(0x1002, {2});
    write_kind(0x1003, {3});
    write_kind(0x1004, {4});
    write_kind(0x1234, cuts_.tagged);
    write_kind(0, {0});
  }

  void expect_read(std::uint64_t offset, const std::vector<std::size_t>& lens) {
    const auto size = static_cast<std::uint32_t>(sum(lens));
    const std::uint32_t sink = size > 0 ? kLocal : 1;
    const std::uint64_t sink_to = size > 0 ? kLocalBase + offset : 0;
    c_.expect(end_, read_request(read_msn_++, {sink, sink_to, size, kRemote, kRemoteBase + offset}));
    std::uint64_t done = 0;
    for (std::size_t i = 0; i < lens.size(); ++i) {
      c_.expect(other(end_),
                tagged(kReadResponse, sink, sink_to + done, remote(offset + done, lens[i]), i + 1 == lens.size()));
      done += lens[i];
    }
    SendWr wr = request(SendOp::kRdmaRead, offset, size);
    wr.remote_stag = {kRemote};
    wr.remote_to = kRemoteBase + offset;
    post(std::move(wr));
  }

  void reads() {
    expect_read(0x2000, {9});
    c_.pump();
    expect_read(0x2100, {0});
    c_.pump();
    // Several at once.
    expect_read(0x2201, {1});
    expect_read(0x4000, cuts_.tagged);
    expect_read(0x2302, {0});
    expect_read(0x2403, {10});
    c_.pump();
  }

  void immediates() {
    for (const bool solicited : {false, true}) {
      rdmap::ImmediateData data;
      const Octets octets = pattern(static_cast<std::uint8_t>(20 + send_msn_), data.size());
      std::copy(octets.begin(), octets.end(), data.begin());
      const Ulpdu message = send(solicited ? kImmediateSe : kImmediate, 0, send_msn_++, 0, octets);
      // Alone the one time, behind an RDMA Write the other.
      SendWr wr = request(solicited ? SendOp::kWriteImmediate : SendOp::kImmediate, 0x3000, solicited ? 21 : 0);
      if (solicited) {
        wr.remote_stag = {kRemote};
        wr.remote_to = kRemoteBase + 0x3000;
        c_.expect(end_, tagged(kWrite, kRemote, wr.remote_to, local(0x3000, 21)));
      }
      wr.solicited = solicited;
      wr.args = data;
      c_.expect(end_, message);
      c_.side(other(end_)).recvs.post(0);
      post(std::move(wr));
      c_.pump();
    }
  }

  // The Request Identifier is the sender's to choose: it is the MSN here.
  void expect_atomic(const rdmap::AtomicOperands& operands, std::uint64_t offset, std::uint64_t original) {
    auto& region = c_.side(other(end_)).memory.regions[kRemote];
    std::memcpy(&region.octets[offset], &original, sizeof(original));
    const std::uint32_t id = read_msn_++;
    c_.expect(end_,
              atomic_request(id, {static_cast<std::uint8_t>(operands.op), id, kRemote, kRemoteBase + offset,
                                  operands.add_swap, operands.add_swap_mask, operands.compare, operands.compare_mask}));
    c_.expect(other(end_), atomic_response(atomic_msn_++, id, original));
    SendWr wr = request(SendOp::kAtomic, 0x3100, 8);
    wr.remote_stag = {kRemote};
    wr.remote_to = kRemoteBase + offset;
    wr.args = operands;
    post(std::move(wr));
  }

  void atomics() {
    // FetchAdd compares nothing: the field is 0, its mask all ones (RFC 7306 section 5.2.1).
    expect_atomic({rdmap::AtomicOp::kFetchAdd, 0x0102030405060708, 0x8000000080000000, 0, ~std::uint64_t{0}}, 0x3208,
                  0x1112131415161718);
    c_.pump();
    expect_atomic(
        {rdmap::AtomicOp::kCmpSwap, 0x2122232425262728, 0x00ffff00ff00ff00, 0x3132333435363738, 0x00ff00ff00ff00fe},
        0x3210, 0x4142434445464748);
    expect_atomic({rdmap::AtomicOp::kFetchAdd, 1, 0, 0, ~std::uint64_t{0}}, 0x3218, ~std::uint64_t{0});
    c_.pump();
  }

  Conversation& c_;
  End end_;
  Cuts cuts_;
  std::uint32_t send_msn_ = 1;
  std::uint32_t read_msn_ = 1;
  std::uint32_t atomic_msn_ = 1;
  std::size_t num_posted_ = 0;
  std::size_t num_before_ = 0;
};

void converse(Capture& capture, Setup setup, const Cuts& cuts) {
  Conversation c(capture, std::move(setup));
  c.connect();
  // The initiator first: the responder may say nothing before it.
  for (End end : {End::kInitiator, End::kResponder}) Script(c, end, cuts).run();
}

}  // namespace

// Every place that a Marker can have in an FPDU of 36 octets: 508 is 4 more than a multiple of 36, so that each Marker
// comes 4 octets later than the last. The Private Data makes the first FPDU's sequence number, as tshark counts them
// from the SYN, a multiple of 512: tshark takes it for that where it looks for a Marker between PAD and CRC.
void marker_places(Capture& capture) {
  constexpr std::size_t kFpduLen = 36;
  constexpr std::size_t kPayloadLen = 13;  // and 3 of PAD
  constexpr int kNumFpdus = 9 * 512 / 36;
  Conversation c(capture, Setup("Marker places", true, true));
  c.connect(512 - 1 - 20);
  c.side(End::kResponder).memory.add_simple(kRemote, 7, kRemoteBase, kRegionLen);
  for (int i = 0; i < kNumFpdus; ++i) {
    SendWr wr;
    wr.op = SendOp::kRdmaWrite;
    wr.inline_data = pattern(static_cast<std::uint8_t>(i), kPayloadLen);
    wr.remote_stag = {kRemote};
    wr.remote_to = kRemoteBase + static_cast<std::uint64_t>(i);
    c.expect(End::kInitiator, tagged(kWrite, kRemote, wr.remote_to, wr.inline_data));
    c.post(End::kInitiator, std::move(wr));
    c.pump();
  }
  for (std::size_t place = 0; place < kFpduLen; place += 4)
    if (!c.marker_places().contains(place)) c.fail("no Marker in one of the places");
}

void data_kinds(Capture& capture) {
  // EMSS 1460: MULPDU 1454.
  const Cuts ethernet{{1440, 1440, 77}, {1436, 1436, 78}};
  converse(capture, Setup("CRC"), ethernet);
  converse(capture, Setup("no CRC", false), ethernet);
  // EMSS 508 with Markers: MULPDU 498, so that every FPDU has at most one.
  const Cuts marked{{484, 484, 484, 79}, {480, 480, 480, 80}};
  for (bool crc : {true, false}) {
    Setup setup(crc ? "Markers, CRC" : "Markers, no CRC", crc, true);
    setup.emss = 508;
    converse(capture, std::move(setup), marked);
  }
  marker_places(capture);
  // EMSS 65483, loopback's: MULPDU 64768, the most there may be; 64766 of them need no PAD.
  Setup large("large FPDUs");
  large.emss = 65483;
  converse(capture, std::move(large), {{64752, 22}, {64748, 23}});
}

}  // namespace weft::e2e
