// A whole stream against an arbitrary peer and an arbitrary caller. The input is a list of operations; CRCs are agreed
// off, so that every octet of an FPDU reaches what is behind the check.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <vector>

#include "mpa/fpdu.h"
#include "mpa/startup_frame.h"
#include "mpa/testing/naive_framer.h"
#include "rdmap/testing/pair.h"

namespace {

using namespace weft;

void check(bool holds) {
  if (!holds) std::abort();
}

class Input {
 public:
  explicit Input(ConstBytes octets) : rest_(octets) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t u8() {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_[0];
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint16_t u16() {
    const auto high = static_cast<unsigned>(u8());
    return static_cast<std::uint16_t>(high << 8 | u8());
  }
  ConstBytes bytes(std::size_t len) {
    const ConstBytes out = rest_.first(std::min(len, rest_.size()));
    rest_ = rest_.subspan(out.size());
    return out;
  }

 private:
  ConstBytes rest_;
};

// The regions of rdmap-vectors.txt, so that its records make a corpus, and one of our own.
constexpr std::uint32_t kStags[] = {0x1a2b3c01, 0x2b3c4d02, 0x3c4d5e03, 0x6f708106, 0x92a3b409, 0x11};

class Machine {
 public:
  explicit Machine(Input input) : input_(input), config_(config(input_)), side_(config_) {
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
    const std::uint8_t mode = input_.u8();
    if ((mode & 1) != 0) {
      side_.stream.start_initiator(input_.bytes(input_.u8() & 15), side_.recvs, now_);
    } else {
      side_.stream.start_responder(now_);
    }
    if ((mode & 2) != 0) hurry((mode & 1) != 0, (mode & 4) != 0);
    for (int i = 0; i < 2000 && !input_.empty(); ++i) operation();
    finish();
  }

 private:
  static rdmap::StreamConfig config(Input& input) {
    rdmap::StreamConfig config;
    config.scope = {.pd = 7, .stream = 1};
    config.crc = false;
    const std::uint8_t octet = input.u8();
    config.ird = octet & 3;
    config.ord = octet >> 2 & 3;
    config.max_send_wr = 8;
    config.fpdu_limit = (octet & 0x10) != 0 ? 1 : 0;
    config.mpa_revision = (octet & 0x20) != 0 ? 1 : 2;
    // Without CRCs placement is direct; from staging where nothing is ever worth it.
    config.direct_min_len = (octet & 0x40) != 0 ? 0 : SIZE_MAX;
    config.markers = (octet & 0x80) != 0;
    return config;
  }

  // Past MPA startup without the fuzzer's having to guess a Key.
  void hurry(bool initiator, bool markers) {
    mpa::StartupFrame frame;
    frame.m = markers;
    frame.kind = initiator ? mpa::FrameKind::kReply : mpa::FrameKind::kRequest;
    frame.rev = 1;
    if (initiator) {
      frame.rev = side_.transmit(now_)[17];  // as the Request says
      if (frame.rev == 2) {
        frame.s = true;
        frame.private_data = {0, 2, 0, 2};
      }
    }
    std::vector<std::uint8_t> octets;
    mpa::emit_startup_frame(frame, octets);
    side_.receive(octets, now_);
    side_.stream.accept({}, side_.recvs, 2, 2, 7, now_);
    side_.transmit(now_);
  }

  void feed_framed(ConstBytes ulpdu) { side_.receive(framer_.frame(ulpdu), now_, 1u + (ulpdu.size() % 7) * 16); }

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
      const ConstBytes data = input_.bytes(input_.u8());
      wr.inline_data.assign(data.begin(), data.end());
    } else {
      for (int i = kind >> 6; i >= 0; --i) {
        const std::uint16_t addr = input_.u16();
        wr.sg_list.push_back({addr, input_.u16(), ddp::Stag{kStags[input_.u8() % 6]}});
      }
    }
    if (side_.stream.post_send(std::move(wr)) == rdmap::PostResult::kOk) ++next_wr_id_;
  }

  void transmit() {
    const auto views = side_.stream.tx_buffers(input_.u16(), input_.u16() * 16u, now_);
    std::size_t total = 0;
    unsigned sum = 0;
    for (ConstBytes view : views) {
      total += view.size();
      for (std::uint8_t octet : view) sum += octet;  // read it all: ASan looks
    }
    sum_ = sum;
    if (!views.empty()) side_.stream.on_tx(std::min<std::size_t>(total, input_.u16()), now_);
  }

  void operation() {
    switch (input_.u8() & 15) {
      case 0: return side_.receive(input_.bytes(input_.u16() & 0x3ff), now_, 1 + input_.u8());
      case 1:
      case 2: return feed_framed(input_.bytes(input_.u8()));
      case 3: return post();
      case 4:
      case 5: return transmit();
      case 6: return side_.recvs.post(next_recv_id_++, {{input_.u8() & 31u, input_.u8() & 31u, ddp::Stag{0x11}}});
      case 7: return side_.stream.park(side_.staging);
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
      default: return;
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
        wr.args = immediate;
        break;
      default:
        wr.op = rdmap::SendOp::kBindWindow;
        if ((kind & 8) != 0) wr.op = rdmap::SendOp::kInvalidateWindow;
        wr.args = ddp::WindowBind{};
        side_.memory.refuse_windows = (kind & 32) != 0;
    }
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
      default: return side_.stream.reject({}, now_);
    }
  }

  void act() { side_.stream.on_llp_action_done(side_.stream.llp_action()); }

  void drain() {
    const bool was_closed = !side_.closed.empty();
    const std::size_t num = side_.completions.size();
    side_.drain();
    check(side_.closed.size() <= 1);
    if (was_closed) check(side_.completions.size() == num);  // Closed is the last event
  }

  // Everything ends, and ends once.
  void finish() {
    side_.stream.on_llp_error(ECONNRESET, now_);
    drain();
    check(side_.closed.size() == 1);
    check(!side_.stream.wants_tx());
    check(!side_.stream.next_timeout());
    std::set<std::uint64_t> sends, recvs;
    for (const auto& c : side_.completions)
      check((c.op == rdmap::WorkOp::kRecv ? recvs : sends).insert(c.wr_id).second);
    check(recvs.size() == side_.recvs.num_taken);
    check(sends.size() <= next_wr_id_);
  }

  Input input_;
  const rdmap::StreamConfig config_;
  rdmap::testing::Side side_;
  mpa::testing::NaiveFramer framer_{false, config_.markers};
  TimePoint now_{};
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
