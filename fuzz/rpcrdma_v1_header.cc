// A message as a responder and a requester see it: both judge it. A parsed header is emitted and parses again.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "rpcrdma/private_data.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v1/receive.h"

namespace {

using namespace weft::rpcrdma;

void check(bool holds) {
  if (!holds) std::abort();
}

void parse_emit_parse(weft::ConstBytes message) {
  xdr::XdrReader in(message);
  v1::Header header;
  if (v1::parse_header(in, header) != v1::HeaderError::kNone) return;
  std::vector<std::uint8_t> octets;
  xdr::XdrWriter out(octets);
  v1::emit_header(out, header);
  check(octets.size() == in.position());
  check(std::equal(octets.begin(), octets.end(), message.begin()));
  xdr::XdrReader again(octets);
  v1::Header back;
  check(v1::parse_header(again, back) == v1::HeaderError::kNone && back == header && again.at_end());
}

void validated_lists_hold_no_nonsense(const ChunkLists& lists, const ChunkLimits& limits) {
  std::uint32_t last = 0;
  for (const Chunk& chunk : lists.read_chunks()) {
    check(chunk.position > last && chunk.position % 4 == 0);
    check(chunk.length <= limits.max_item && chunk.length == total_length(chunk.segments));
    last = chunk.position;
  }
  if (lists.call_chunk() != nullptr) check(lists.call_chunk()->length <= limits.max_message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes message(data, size);
  parse_emit_parse(message);

  const ChunkLimits limits;
  ReceivedCall call;
  const CallVerdict verdict = v1::receive_call(message, limits, call);
  check(size >= v1::kMinHeader || verdict == CallVerdict::kDiscard);
  if (verdict == CallVerdict::kAccept) validated_lists_hold_no_nonsense(call.lists, limits);

  // As a Reply to a Call without chunks, and to a Call that offered just the returned chunks.
  ReceivedReply reply;
  v1::receive_reply(message, {}, reply);
  xdr::XdrReader in(message);
  v1::Header header;
  if (v1::parse_header(in, header) == v1::HeaderError::kNone) {
    const auto& lists = header.lists;
    v1::receive_reply(message, {lists.write_list, lists.reply_chunk ? &*lists.reply_chunk : nullptr}, reply);
  }

  const PrivateData settings = parse_private_data(message);
  check(parse_private_data(emit_private_data(settings)) == settings);
  return 0;
}
