// The XDR cursors: the input's first half is a script for reading the second half. Each value read is written again and
// must give the same octets, except roundup, which a reader may ignore.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "rpcrdma/xdr/xdr.h"

namespace {

using namespace weft::rpcrdma;

void check(bool holds) {
  if (!holds) std::abort();
}

void one_step(std::uint8_t op, xdr::XdrReader& in, xdr::XdrWriter& out) {
  std::uint32_t word = 0;
  std::uint64_t wide = 0;
  bool flag = false;
  weft::ConstBytes octets;
  std::string_view text;
  const std::size_t before = in.position();
  bool moved = true;
  switch (op % 6) {
    case 0: (moved = in.u32(word)) ? out.u32(word) : void(); break;
    case 1: (moved = in.u64(wide)) ? out.u64(wide) : void(); break;
    case 2: (moved = in.boolean(flag)) ? out.boolean(flag) : void(); break;
    case 3: (moved = in.opaque(octets, op)) ? out.opaque(octets) : void(); break;
    case 4: (moved = in.string(text)) ? out.string(text) : void(); break;
    case 5: (moved = in.opaque_fixed(op, octets)) ? out.opaque_fixed(octets) : void(); break;
    default: break;
  }
  check(moved || in.position() == before);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes script(data, size / 2);
  const weft::ConstBytes octets(data + size / 2, size - size / 2);
  xdr::XdrReader in(octets, xdr::Padding::kZero);
  std::vector<std::uint8_t> written;
  xdr::XdrWriter out(written);
  for (const std::uint8_t op : script) one_step(op, in, out);
  check(written.size() == in.position() && in.position() + in.remaining() == octets.size());
  check(std::equal(written.begin(), written.end(), octets.begin()));
  return 0;
}
