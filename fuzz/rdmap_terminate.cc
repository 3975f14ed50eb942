// The body of a Terminate Message: a parsed body is emitted as octets with the same meaning.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "rdmap/diagnosis.h"
#include "rdmap/terminate.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

// The same message in the bit order of Linux siw, which returns headers as M and D, or all three, or none: they are
// found in the same places.
void check_siws_order(const weft::rdmap::TerminateMessage& message,
                      std::array<std::uint8_t, weft::rdmap::kTerminateMaxLen>& octets, std::size_t len) {
  if (!message.segment_len || message.ddp_header_len == 0) return;
  octets[0] = static_cast<std::uint8_t>(octets[0] << 4 | octets[0] >> 4);
  octets[2] = message.has_rdma_header ? 0x07 : 0x03;
  auto siw = weft::rdmap::parse_terminate(weft::ConstBytes(octets).first(len));
  check(siw && siw->siw == message.what);
  siw->what = message.what;
  siw->siw.reset();
  check(siw == message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  auto message = rdmap::parse_terminate({data, size});
  check(message.has_value() == (size >= rdmap::kTerminateControlLen));
  if (!message) return 0;
  check(!rdmap::describe(message->what).empty());
  if (message->siw) check(!rdmap::describe(*message->siw).empty());
  for (const auto course : {rdmap::Course::kReceived, rdmap::Course::kSent}) {
    const std::string line = rdmap::one_line(rdmap::diagnose(*message, course));
    check(line.find('\n') == line.npos && line.find("Try: ") != line.npos);
  }
  message->siw.reset();
  std::array<std::uint8_t, rdmap::kTerminateMaxLen> octets;
  octets.fill(0xa5);
  const std::size_t len = rdmap::emit_terminate(*message, octets);
  check(len <= octets.size());
  // D without M has a length field without meaning. Emission adds nothing else.
  check(rdmap::parse_terminate(weft::ConstBytes(octets).first(len)) == message);
  check_siws_order(*message, octets, len);
  return 0;
}
