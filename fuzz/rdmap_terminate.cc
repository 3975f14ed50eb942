// The body of a Terminate Message: whatever was understood of it comes out as octets that mean the same.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "rdmap/terminate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const auto check = [](bool holds) {
    if (!holds) std::abort();
  };
  auto message = rdmap::parse_terminate({data, size});
  check(message.has_value() == (size >= rdmap::kTerminateControlLen));
  if (!message) return 0;
  check(!rdmap::describe(message->what).empty());
  if (message->siw) check(!rdmap::describe(*message->siw).empty());
  message->siw.reset();
  std::array<std::uint8_t, rdmap::kTerminateMaxLen> octets;
  octets.fill(0xa5);
  const std::size_t len = rdmap::emit_terminate(*message, octets);
  check(len <= octets.size());
  // D without M has a length field that says nothing; nothing else is added to what was read.
  check(rdmap::parse_terminate(ConstBytes(octets).first(len)) == message);
  return 0;
}
