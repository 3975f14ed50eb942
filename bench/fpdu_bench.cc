// fpdu_bench measures the cost of CRC32c and of FPDU framing on this machine, without a socket.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "mpa/crc32c.h"
#include "mpa/fpdu_writer.h"

namespace weft {
namespace {

constexpr std::size_t kDdpTaggedHeaderLen = 14;

void BM_Crc32c(benchmark::State& state) {
  std::vector<std::uint8_t> octets(std::size_t(state.range(0)), 0x5a);
  for (auto _ : state) benchmark::DoNotOptimize(mpa::crc32c(octets));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Crc32c)->Arg(64)->Arg(256)->Arg(1460)->Arg(8192)->Arg(65536);

// One turn fills a batch with FPDUs of this payload and takes the gather list, as a connection does before sendmsg.
void BM_FrameBatch(benchmark::State& state) {
  std::vector<std::uint8_t> payload(std::size_t(state.range(0)), 0x5a);
  std::vector<std::uint8_t> header(kDdpTaggedHeaderLen, 0);
  mpa::FpduWriter writer(true);
  const ConstBytes pieces[] = {payload};
  std::int64_t octets = 0;
  for (auto _ : state) {
    while (writer.pending_octets() < mpa::FpduWriter::kMaxBatchLen && writer.add(header, pieces, false)) {
    }
    benchmark::DoNotOptimize(writer.buffers().data());
    octets += std::int64_t(writer.pending_octets());
    writer.on_tx(writer.pending_octets());
  }
  state.SetBytesProcessed(octets);
}
BENCHMARK(BM_FrameBatch)->Arg(64)->Arg(1408)->Arg(8192)->Arg(65408);

}  // namespace
}  // namespace weft

BENCHMARK_MAIN();
