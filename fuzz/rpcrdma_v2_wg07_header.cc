// A message of version 2 as a receiver of wg07 sees it; and properties, which come out of a table as they went in.
#include <cstdint>

#include "fuzz/rpcrdma_v2_header.h"
#include "rpcrdma/v2_wg07/header.h"
#include "rpcrdma/v2_wg07/properties.h"

namespace {

using namespace weft::rpcrdma;

void properties_read_back(weft::ConstBytes octets) {
  xdr::XdrReader in(octets);
  v2::Propset set;
  if (v2::parse_propset(in, set) != v2::HeaderError::kNone) return;
  const v2::PropertyTable& table = v2_wg07::kProperties;
  weft::rpcrdma::Properties told = table.defaults;
  if (v2::apply(set, table, told) != v2::HeaderError::kNone) {
    weft::fuzz::check(told == table.defaults);
    return;
  }
  weft::rpcrdma::Properties heard = table.defaults;
  weft::fuzz::check(v2::apply(v2::make_propset(told, table), table, heard) == v2::HeaderError::kNone && heard == told);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes message(data, size);
  weft::fuzz::parse_emit_parse<v2_wg07::Header>(message);
  weft::fuzz::agree(message, weft::wire_v2::Profile::kWg07);
  if (size >= 16) properties_read_back(message.subspan(16));
  return 0;
}
