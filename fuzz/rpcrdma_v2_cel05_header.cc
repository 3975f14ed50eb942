// A message of version 2 as a receiver of cel05 sees it, as a server's first message and as a client's first answer.
#include <cstdint>

#include "fuzz/rpcrdma_v2_header.h"
#include "rpcrdma/v2_cel05/header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes message(data, size);
  weft::fuzz::parse_emit_parse<weft::rpcrdma::v2_cel05::Header>(message);
  weft::fuzz::agree(message, weft::wire_v2::Profile::kCel05);
  weft::fuzz::as_first_message(message);
  return 0;
}
