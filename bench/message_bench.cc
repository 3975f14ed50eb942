// message_bench measures the cost of a message in user space: two Streams of one process, no socket between them.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "ddp/range.h"
#include "mpa/staging.h"
#include "rdmap/stream.h"

namespace weft::rdmap {
namespace {

// OneRegion is a memory table with the shortest possible look-up: the look-up is not to be measured.
class OneRegion final : public ddp::MemoryTable {
 public:
  std::variant<MutBytes, ddp::AccessError> resolve(ddp::StreamScope, ddp::Stag, std::uint64_t to, std::size_t len,
                                                   ddp::Right) override {
    if (const auto error = ddp::check_range(0, octets_.size(), to, len)) return *error;
    return MutBytes(octets_).subspan(std::size_t(to), len);
  }
  std::variant<std::monostate, ddp::AccessError> invalidate(ddp::StreamScope, ddp::Stag) override { return {}; }

 private:
  std::vector<std::uint8_t> octets_ = std::vector<std::uint8_t>(1 << 20, 0x5a);
};

class EndlessRecvs final : public RecvSource {
 public:
  std::optional<PostedRecv> take() override {
    PostedRecv out;
    out.sg_list.push_back({0, 1 << 20, ddp::Stag{1}});
    return out;
  }
};

struct Side {
  Side() : stream(StreamConfig(), memory) {}

  // Everything this one has to say, into the other, in FPDUs of at most emss octets.
  void send_to(Side& other, std::size_t emss = 65483) {
    while (true) {
      const auto views = stream.tx_buffers(emss, 1 << 20, now);
      if (views.empty()) return;
      const MutBytes room = other.stream.rx_buffers(other.staging).front();
      std::size_t n = 0;
      for (const ConstBytes view : views) {
        std::copy(view.begin(), view.end(), room.begin() + std::ptrdiff_t(n));
        n += view.size();
      }
      stream.on_tx(n, now);
      other.stream.on_rx(other.staging, n, now);
    }
  }
  std::size_t drain() {
    std::size_t num = 0;
    while (auto event = stream.poll_event()) num += std::holds_alternative<Completion>(*event) ? 1 : 0;
    return num;
  }

  TimePoint now{};
  OneRegion memory;
  EndlessRecvs recvs;
  mpa::Staging staging;
  Stream stream;
};

struct Joined {
  Joined() {
    a.stream.start_initiator({}, a.recvs, a.now);
    b.stream.start_responder(b.now);
    a.send_to(b);
    b.drain();
    b.stream.accept({}, b.recvs, 16, 16, 0, b.now);
    b.send_to(a);
    a.drain();
  }
  Side a;
  Side b;
};

void post(Stream& stream, SendOp op, std::size_t len) {
  SendWr wr;
  wr.op = op;
  wr.sg_list.push_back({0, std::uint32_t(len), ddp::Stag{1}});
  if (stream.post_send(std::move(wr)) != PostResult::kOk) std::abort();
}

// One Send, from the post to both completions.
void BM_Send(benchmark::State& state) {
  Joined joined;
  for (auto _ : state) {
    post(joined.a.stream, SendOp::kSend, std::size_t(state.range(0)));
    joined.a.send_to(joined.b);
    if (joined.a.drain() != 1 || joined.b.drain() != 1) state.SkipWithError("a Send did not complete");
  }
}
BENCHMARK(BM_Send)->Arg(64)->Arg(4096);

// Sixty-four Writes, posted and sent at once.
void BM_Writes(benchmark::State& state) {
  Joined joined;
  for (auto _ : state) {
    for (int i = 0; i < 64; ++i) post(joined.a.stream, SendOp::kRdmaWrite, std::size_t(state.range(0)));
    joined.a.send_to(joined.b);
    if (joined.a.drain() != 64) state.SkipWithError("a Write did not complete");
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(BM_Writes)->Arg(64);

// A Write of 256 KiB in FPDUs of so many octets, as Ethernet carries them.
void BM_LongWrite(benchmark::State& state) {
  constexpr std::size_t kLen = std::size_t{256} << 10;
  Joined joined;
  for (auto _ : state) {
    post(joined.a.stream, SendOp::kRdmaWrite, kLen);
    joined.a.send_to(joined.b, std::size_t(state.range(0)));
    if (joined.a.drain() != 1) state.SkipWithError("a Write did not complete");
  }
  state.SetBytesProcessed(state.iterations() * std::int64_t{kLen});
}
BENCHMARK(BM_LongWrite)->Arg(1448)->Arg(8948)->Arg(65483);

}  // namespace
}  // namespace weft::rdmap

BENCHMARK_MAIN();
