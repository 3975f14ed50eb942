// A whole stream against an arbitrary peer and an arbitrary caller. The input is a list of operations behind two octets
// of settings, or four. CRCs are agreed off unless the settings say otherwise. Then this target adds the right CRCs, so
// that every octet of an FPDU gets past the check.
#include <array>
#include <cerrno>
#include <cstdint>
#include <set>
#include <vector>

#include "ddp/segment.h"
#include "fuzz/op_stream.h"
#include "mpa/fpdu.h"
#include "mpa/peer_profile.h"
#include "mpa/startup_frame.h"
#include "mpa/testing/naive_framer.h"
#include "rdmap/atomic.h"
#include "rdmap/header.h"
#include "rdmap/testing/pair.h"

namespace {

using namespace weft;
using fuzz::Input;
using fuzz::must;

// The regions of rdmap-vectors.txt, so that its records make a corpus, and one of our own.
constexpr std::uint32_t kStags[] = {0x1a2b3c01, 0x2b3c4d02, 0x3c4d5e03, 0x6f708106, 0x92a3b409, 0x11};
constexpr std::uint64_t kBases[] = {0x1000, 0x40000, 0, 0x8000, 0xfffffffffffff000, 0};

// Settings are the octets before the operations. The last two are there where the second one's top bit says so, and
// are 0 otherwise.
struct Settings {
  explicit Settings(Input& input) : limits(input.u8()), mode(input.u8()) {
    if ((mode & 0x80) == 0) return;
    options = input.u8();
    peer = input.u8();
  }

  bool initiator() const { return (mode & 1) != 0; }
  bool hurry() const { return (mode & 2) != 0; }
  bool peer_markers() const { return (mode & 4) != 0; }
  bool peer_writes_its_words() const { return (mode & 8) != 0; }  // hurry takes the peer's frame from the input
  bool late() const { return (mode & 0x40) != 0; }                // operations come before the start, too
  bool too_much_private_data() const { return (peer & 0x08) != 0; }

  rdmap::StreamConfig config() const {
    rdmap::StreamConfig config;
    config.scope = {.pd = 7, .stream = 1};
    config.ird = limits & 3;
    config.ord = limits >> 2 & 3;
    if ((peer & 0x10) != 0) config.ird = mpa::EnhancedWords::kManual;
    if ((peer & 0x20) != 0) config.ord = mpa::EnhancedWords::kManual;
    config.max_send_wr = 8;
    config.fpdu_limit = (limits & 0x10) != 0 ? 1 : 0;
    config.mpa_revision = (limits & 0x20) != 0 ? 1 : 2;
    // Without CRCs placement is direct; from staging where nothing is ever worth it.
    config.direct_min_len = (limits & 0x40) != 0 ? 0 : SIZE_MAX;
    config.markers = (limits & 0x80) != 0;
    config.crc = (options & 0x01) != 0;
    config.placement = (options & 0x02) != 0 ? rdmap::Placement::kDirect : rdmap::Placement::kVerify;
    config.rfc7306 = (options & 0x04) == 0;
    config.permissive = (options & 0x08) != 0;
    config.rtr_offered = {(options & 0x10) != 0, (options & 0x20) != 0, (options & 0x40) != 0};
    config.keep_llp_after_reject = (options & 0x80) != 0;
    config.peer = mpa::peer_profiles()[(peer & 7u) % mpa::peer_profiles().size()];
    return config;
  }

  std::uint8_t limits;
  std::uint8_t mode;
  std::uint8_t options = 0;
  std::uint8_t peer = 0;
};

class Machine {
 public:
  explicit Machine(Input input) : input_(input), settings_(input_), config_(settings_.config()), side_(config_) {
    using Region = rdmap::testing::FakeMemory::Region;
    const auto add = [&](std::uint32_t stag, Region region, std::size_t len) {
      region.octets.assign(len, 0xa5);
      side_.memory.add(stag, std::move(region));
    };
    add(kStags[0], {7, {}, 0x1000, false, true, true, {}}, 4096);
    add(kStags[1], {7, {}, 0x40000, true, false, true, {}}, 8192);
    add(kStags[2], {7, {1}, 0, true, true, true, {}}, 4096);
    add(kStags[3], {7, {}, 0x8000, false, false, true, {}}, 8192);
    add(kStags[4], {7, {}, 0xfffffffffffff000, true, true, true, {}}, 4080);
    add(kStags[5], {7, {}, 0, false, false, true, {}}, 64);
  }

  void run() {
    if (!settings_.late()) start();
    if (!settings_.late() && settings_.hurry()) hurry();
    for (int i = 0; i < 2000 && !input_.empty(); ++i) operation();
    finish();
  }

 private:
  void start() {
    if (!settings_.initiator()) return side_.stream.start_responder(now_);
    const std::vector<std::uint8_t> much(mpa::kMaxPrivateDataLen + 1);
    side_.stream.start_initiator(
        settings_.too_much_private_data() ? weft::ConstBytes(much) : input_.bytes(input_.u8() & 15), side_.recvs, now_);
  }

  // Past MPA startup without the fuzzer's having to guess a Key.
  void hurry() {
    const mpa::StartupFrame frame = settings_.peer_writes_its_words() ? written_frame() : simple_frame();
    std::vector<std::uint8_t> octets;
    mpa::emit_startup_frame(frame, octets);
    const bool rdmac = frame.rev == 0;
    version_ = rdmac ? 0 : 1;
    framer_ = {config_.crc || frame.c, (config_.markers && config_.peer.stands_markers) || rdmac};
    side_.receive(octets, now_);
    side_.stream.accept({}, side_.recvs, 2, 2, 7, now_);
    side_.transmit(now_);
  }

  mpa::FrameKind peer_kind() const { return settings_.initiator() ? mpa::FrameKind::kReply : mpa::FrameKind::kRequest; }

  mpa::StartupFrame simple_frame() {
    mpa::StartupFrame frame;
    frame.m = settings_.peer_markers();
    frame.kind = peer_kind();
    frame.rev = 1;
    if (!settings_.initiator()) return frame;
    const auto request = side_.transmit(now_);
    if (request.size() > 17) frame.rev = request[17];  // as the Request says
    if (frame.rev == 2) {
      frame.s = true;
      frame.private_data = {0, 2, 0, 2};
    }
    return frame;
  }

  // A well-formed frame with any values in its fields.
  mpa::StartupFrame written_frame() {
    if (settings_.initiator()) side_.transmit(now_);
    mpa::StartupFrame frame;
    const std::uint8_t flags = input_.u8();
    const std::uint8_t model = input_.u8();
    frame.kind = peer_kind();
    frame.m = settings_.peer_markers();
    frame.rev = flags & 3;
    frame.s = (flags & 4) != 0;
    frame.c = (flags & 8) != 0;
    frame.r = (flags & 16) != 0;
    mpa::EnhancedWords words{(model & 1) != 0, (model & 2) != 0, (model & 4) != 0, (model & 8) != 0, 0, 0};
    words.ird = input_.u8();
    words.ord = input_.u8();
    if ((model & 16) != 0) words.ird = mpa::EnhancedWords::kManual;
    if ((model & 32) != 0) words.ord = mpa::EnhancedWords::kManual;
    if ((model & 64) == 0) mpa::emit_enhanced_words(words, frame.private_data);
    return frame;
  }

  void feed_framed(weft::ConstBytes ulpdu) { side_.receive(framer_.frame(ulpdu), now_, 1u + (ulpdu.size() % 7) * 16); }

  ddp::Stag some_stag() { return ddp::Stag{kStags[input_.u8() % std::size(kStags)]}; }

  // A tagged buffer of the regions, mostly.
  void some_tagged(ddp::Stag& stag, std::uint64_t& to) {
    const std::size_t i = input_.u8() % std::size(kStags);
    stag.value = kStags[i];
    to = kBases[i] + input_.u16();
  }

  // The octets behind the DDP header of a message with this opcode. They are well formed unless the input says
  // otherwise.
  std::vector<std::uint8_t> peer_body(rdmap::Opcode opcode) {
    if (opcode == rdmap::Opcode::kReadRequest) {
      rdmap::ReadRequestHeader header;
      header.sink_stag = some_stag();
      header.size = input_.u16() & 0x3ff;
      some_tagged(header.src_stag, header.src_to);
      const auto octets = rdmap::emit_read_request_header(header);
      return {octets.begin(), octets.end()};
    }
    if (opcode == rdmap::Opcode::kAtomicRequest) {
      rdmap::AtomicRequestHeader header;
      header.aop_code = input_.u8() & 15;
      header.request_id = input_.u8();
      some_tagged(header.stag, header.to);
      header.operands = {{}, input_.u8(), input_.u8(), input_.u8(), input_.u8()};
      const auto octets = rdmap::emit_atomic_request_header(header);
      return {octets.begin(), octets.end()};
    }
    if (opcode == rdmap::Opcode::kAtomicResponse) {
      const auto octets = rdmap::emit_atomic_response_header({input_.u8(), input_.u16()});
      return {octets.begin(), octets.end()};
    }
    if (rdmap::is_immediate(opcode)) return std::vector<std::uint8_t>(rdmap::kImmediateLen, input_.u8());
    const weft::ConstBytes octets = input_.bytes(input_.u8());
    return {octets.begin(), octets.end()};
  }

  // A segment that the fuzzer needs no luck for: its header goes on where the peer's queue stands.
  void peer_segment() {
    const std::uint8_t kind = input_.u8();
    const auto opcode = static_cast<rdmap::Opcode>(kind & 15);
    const bool last = (kind & 16) == 0;
    std::vector<std::uint8_t> body = peer_body(opcode);
    if ((kind & 32) != 0) body.resize(input_.u16() & 0x7ff, 0x5a);
    const std::uint8_t control = rdmap::emit_control({version_, static_cast<std::uint8_t>(opcode)});
    std::vector<std::uint8_t> ulpdu;
    if (rdmap::is_tagged(opcode)) {
      ddp::TaggedHeader header{last, 0, version_, control, {}, 0};
      some_tagged(header.stag, header.to);
      if ((kind & 64) != 0) header.to = input_.u16();  // the sink of a Read of ours
      ulpdu.resize(ddp::kTaggedHeaderLen);
      ddp::emit_header(header, std::span(ulpdu).first<ddp::kTaggedHeaderLen>());
    } else {
      ulpdu.resize(ddp::kUntaggedHeaderLen);
      ddp::emit_header(peer_untagged(opcode, control, last, body.size()),
                       std::span(ulpdu).first<ddp::kUntaggedHeaderLen>());
    }
    ulpdu.insert(ulpdu.end(), body.begin(), body.end());
    side_.receive(framer_.frame(ulpdu), now_, (kind & 128) != 0 ? 1u + input_.u8() : SIZE_MAX);
  }

  ddp::UntaggedHeader peer_untagged(rdmap::Opcode opcode, std::uint8_t control, bool last, std::size_t len) {
    const std::uint32_t qn = rdmap::queue_of(opcode);
    PeerQueue& queue = peer_queues_[qn];
    const std::uint32_t invalidate = some_stag().value;
    const ddp::UntaggedHeader header{last, 0, version_, control, invalidate, qn, queue.msn, queue.mo};
    queue.mo = last ? 0 : queue.mo + static_cast<std::uint32_t>(len);
    if (last) queue.msn = queue.msn.next();
    return header;
  }

  void post() {
    rdmap::SendWr wr;
    const std::uint8_t kind = input_.u8();
    wr.wr_id = next_wr_id_;
    wr.op = static_cast<rdmap::SendOp>(kind & 3);
    wr.signaled = (kind & 4) == 0;
    wr.fence = (kind & 8) != 0;
    wr.solicited = (kind & 16) != 0;
    wr.remote_stag = ddp::Stag{kStags[input_.u8() % 6]};
    wr.remote_to = input_.u16();
    if ((kind & 32) != 0) {
      const weft::ConstBytes data = input_.bytes(input_.u8());
      wr.inline_data.assign(data.begin(), data.end());
    } else {
      for (int i = kind >> 6; i >= 0; --i) {
        const std::uint16_t addr = input_.u16();
        wr.sg_list.push_back({addr, input_.u16(), ddp::Stag{kStags[input_.u8() % 6]}});
      }
    }
    if (side_.stream.post_send(std::move(wr)) == rdmap::PostResult::kOk) ++next_wr_id_;
  }

  // Octets are taken from the input in statements of their own: the order of arguments is the compiler's.
  void receive_raw() {
    const weft::ConstBytes octets = input_.bytes(input_.u16() & 0x3ff);
    side_.receive(octets, now_, 1 + input_.u8());
  }

  void transmit() {
    const std::size_t emss = input_.u16();
    const auto views = side_.stream.tx_buffers(emss, input_.u16() * 16u, now_);
    std::size_t total = 0;
    unsigned sum = 0;
    for (weft::ConstBytes view : views) {
      total += view.size();
      for (std::uint8_t octet : view) sum += octet;  // read it all: ASan looks
    }
    sum_ = sum;
    if (!views.empty()) side_.stream.on_tx(std::min<std::size_t>(total, input_.u16()), now_);
  }

  void operation() {
    switch (input_.u8() & 15) {
      case 0: return receive_raw();
      case 1:
      case 2: return feed_framed(input_.bytes(input_.u8()));
      case 3: return post();
      case 4:
      case 5: return transmit();
      case 6: return side_.recvs.post(next_recv_id_++, {{input_.u8() & 31u, input_.u8() & 31u, ddp::Stag{0x11}}});
      case 7: side_.stream.park(side_.staging); return;
      case 8: now_ += std::chrono::milliseconds(input_.u16()); return side_.stream.on_timeout(now_);
      case 9: return drain();
      case 10: return act();
      case 11: return side_.stream.accept(input_.bytes(input_.u8() & 7), side_.recvs, 2, 2, 7, now_);
      case 12: return side_.stream.disconnect(now_);
      case 13:
        side_.memory.regions[kStags[input_.u8() % 6]].valid = false;
        side_.memory.regions[kStags[input_.u8() % 6]].pd = input_.u8() & 7;
        return;
      case 14: return rare();
      default: return peer_segment();
    }
  }

  void post_extension(std::uint8_t kind) {
    rdmap::SendWr wr;
    wr.wr_id = next_wr_id_;
    wr.fence = (kind & 16) != 0;
    wr.remote_stag = ddp::Stag{kStags[input_.u8() % 6]};
    wr.remote_to = input_.u16();
    const rdmap::ImmediateData immediate{kind};
    switch (kind & 7) {
      case 4: {
        wr.op = rdmap::SendOp::kAtomic;
        wr.sg_list.push_back({input_.u8(), 8, ddp::Stag{kStags[input_.u8() % 6]}});
        wr.args = rdmap::AtomicOperands{(kind & 8) != 0 ? rdmap::AtomicOp::kCmpSwap : rdmap::AtomicOp::kFetchAdd};
        break;
      }
      case 5:
        wr.op = (kind & 8) != 0 ? rdmap::SendOp::kWriteImmediate : rdmap::SendOp::kImmediate;
        wr.solicited = (kind & 32) != 0;
        wr.args = immediate;
        break;
      default:
        wr.op = rdmap::SendOp::kBindWindow;
        if ((kind & 8) != 0) wr.op = rdmap::SendOp::kInvalidateWindow;
        wr.args = ddp::WindowBind{};
        side_.memory.refuse_windows = (kind & 32) != 0;
    }
    // A request that contradicts itself has to be refused.
    if ((kind & 64) != 0) wr.args = {};
    if ((kind & 128) != 0) wr.sg_list.push_back({0, 4, some_stag()});
    if (side_.stream.post_send(std::move(wr)) == rdmap::PostResult::kOk) ++next_wr_id_;
  }

  void rare() {
    const std::uint8_t kind = input_.u8();
    switch (kind & 7) {
      case 4:
      case 5:
      case 6: return post_extension(kind);
      case 0: return side_.stream.on_rx_eof(now_);
      case 1: return side_.stream.abort(now_);
      case 2: return side_.stream.on_llp_error(ECONNRESET, now_);
      case 3: return side_.stream.reject({}, now_);
      default: return rarest(kind >> 3);
    }
  }

  void rarest(unsigned kind) {
    const std::vector<std::uint8_t> much(mpa::kMaxPrivateDataLen + 1);
    switch (kind & 7) {
      case 0: return side_.stream.reject(much, now_);
      case 1: return side_.stream.fail_setup(now_);
      case 2: return side_.stream.trim();
      case 3: return side_.stream.start_responder(now_);
      case 4: return side_.stream.start_initiator({}, side_.recvs, now_);
      case 5: return side_.stream.accept(much, side_.recvs, 2, 2, 7, now_);
      case 6:
        // Long enough for direct placement, and in two pieces.
        return side_.recvs.post(next_recv_id_++,
                                {{input_.u8(), 200, ddp::Stag{kStags[2]}}, {0, 60, ddp::Stag{kStags[5]}}});
      default: return damaged();
    }
  }

  // An FPDU with one octet changed on the way.
  void damaged() {
    auto fpdu = framer_.frame(input_.bytes(input_.u8()));
    const std::size_t at = input_.u8() % fpdu.size();
    fpdu[at] ^= static_cast<std::uint8_t>(1 + (input_.u8() & 7));
    side_.receive(fpdu, now_, 1u + input_.u8());
  }

  void act() { side_.stream.on_llp_action_done(side_.stream.llp_action()); }

  void drain() {
    const bool was_closed = !side_.closed.empty();
    const std::size_t num = side_.completions.size();
    side_.drain();
    must(side_.closed.size() <= 1);
    if (was_closed) must(side_.completions.size() == num);  // Closed is the last event
  }

  // Everything ends, and ends once.
  void finish() {
    if (settings_.late()) start();
    side_.stream.on_llp_error(ECONNRESET, now_);
    drain();
    must(side_.closed.size() == 1);
    must(!side_.stream.wants_tx());
    must(!side_.stream.next_timeout());
    std::set<std::uint64_t> sends, recvs;
    for (const auto& c : side_.completions) must((c.op == rdmap::WorkOp::kRecv ? recvs : sends).insert(c.wr_id).second);
    must(recvs.size() == side_.recvs.num_taken);
    must(sends.size() <= next_wr_id_);
  }

  struct PeerQueue {
    ddp::Msn msn;
    std::uint32_t mo = 0;
  };

  Input input_;
  const Settings settings_;
  const rdmap::StreamConfig config_;
  rdmap::testing::Side side_;
  mpa::testing::NaiveFramer framer_{config_.crc, config_.markers};
  std::uint8_t version_ = 1;  // of DDP and RDMAP
  std::array<PeerQueue, 4> peer_queues_;
  weft::TimePoint now_{};
  std::uint64_t next_wr_id_ = 0;
  std::uint64_t next_recv_id_ = 0;
  volatile unsigned sum_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Machine machine(Input({data, size}));
  machine.run();
  return 0;
}
