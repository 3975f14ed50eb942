// A pcapng file with arbitrary octets, block by block.
#include <cstring>

#include "apps/dissect/pcapng.h"
#include "apps/dissect/tcp_segment.h"
#include "fuzz/op_stream.h"

using namespace weft;
using namespace weft::apps::dissect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Pcapng file;
  ConstBytes rest(data, size);
  while (rest.size() >= Pcapng::kMinBlock) {
    const auto len = file.block_len(rest.first<Pcapng::kMinBlock>());
    if (!len.ok()) break;
    fuzz::must(*len >= Pcapng::kMinBlock && *len <= Pcapng::kMaxBlock);
    if (*len > rest.size()) break;
    // The octets behind the block are none of its.
    const std::vector<std::uint8_t> block(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(*len));
    rest = rest.subspan(*len);
    const auto packet = file.on_block(block);
    if (!packet.ok()) break;
    if (!*packet) continue;
    fuzz::must((*packet)->time >= Timestamp() && (*packet)->octets.size() <= block.size());
    (void)parse_tcp_segment(**packet);
  }
  return 0;
}
