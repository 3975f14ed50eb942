// A half connection in Full Operation. The first octet of the input switches CRCs and Markers on (its two lowest bits)
// and says in which pieces the rest arrives; without CRCs the fuzzer reaches everything behind the check.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "mpa/fpdu_reader.h"
#include "mpa/fpdu_writer.h"
#include "mpa/staging.h"
#include "mpa/testing/octets_of.h"

namespace {

using namespace weft;

void check(bool holds) {
  if (!holds) std::abort();
}

// The buffers are kept from one input to the next: making them costs far more than a run.
mpa::Staging& empty_staging(mpa::Staging& staging) {
  staging.consume(staging.pending().size());
  return staging;
}

// With CRCs, a ULPDU that is framed again has the same length and reads back the same.
void frame_again(weft::ConstBytes ulpdu) {
  if (ulpdu.size() > mpa::kMaxMulpdu) return;
  mpa::FpduWriter writer(true);
  check(writer.add(ulpdu, {}, false));
  check(writer.pending_octets() == mpa::fpdu_len(ulpdu.size()));
  static mpa::Staging kept(2 * 66 * 1024);
  mpa::Staging& staging = empty_staging(kept);
  for (const weft::ConstBytes& piece : writer.buffers()) {
    std::memcpy(staging.space(piece.size()).data(), piece.data(), piece.size());
    staging.commit(piece.size());
  }
  mpa::FpduReader reader(true);
  const auto next = reader.next(staging);
  const std::vector<std::uint8_t> got = mpa::testing::octets_of(std::get<mpa::Ulpdu>(next));
  check(std::equal(got.begin(), got.end(), ulpdu.begin(), ulpdu.end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool crc = (data[0] & 1) != 0;
  const bool markers = (data[0] & 2) != 0;
  const std::size_t piece_len = std::size_t{1} + (data[0] >> 2) * 16u;
  weft::ConstBytes octets(data + 1, size - 1);
  static mpa::Staging kept(2 * 66 * 1024);
  mpa::Staging& staging = empty_staging(kept);
  mpa::FpduReader reader(crc, markers);
  int num_framed = 0;
  while (!octets.empty()) {
    const std::size_t len = std::min(piece_len, octets.size());
    std::memcpy(staging.space(len).data(), octets.data(), len);
    staging.commit(len);
    octets = octets.subspan(len);
    while (true) {
      const std::size_t before = staging.pending().size();
      const auto next = reader.next(staging);
      if (const auto* ulpdu = std::get_if<mpa::Ulpdu>(&next)) {
        check(ulpdu->size() != 0);
        const std::size_t bare_len = mpa::fpdu_len(ulpdu->size());
        const std::size_t len = before - staging.pending().size();
        check(markers ? len >= bare_len && len <= bare_len + 4 * (1 + bare_len / 508) : len == bare_len);
        if (num_framed++ < 4) frame_again(mpa::testing::octets_of(*ulpdu));
        continue;
      }
      check(staging.pending().size() == before);
      if (const auto partial = reader.partial(staging)) {
        // The part of an FPDU that has arrived is readable before the rest arrives.
        const std::size_t arrived = partial->arrived_ulpdu_len();
        check(arrived <= partial->ulpdu_len);
        std::vector<std::uint8_t> head(std::min<std::size_t>(arrived, 70));
        partial->ulpdu().copy(0, head);
      }
      if (const auto* more = std::get_if<mpa::NeedMore>(&next)) check(more->len != 0);
      break;
    }
    if (reader.error()) {
      check(std::get<mpa::Error>(reader.next(staging)) == *reader.error());  // for ever
      return 0;
    }
  }
  return 0;
}
