// ONC RPC headers, read as Call, as Reply and as AUTH_SYS body. A parsed header is emitted and parses to itself.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "rpcrdma/rpc_message.h"

namespace {

using namespace weft::rpcrdma;

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes octets(data, size);
  CallHeader call;
  xdr::XdrReader call_in(octets);
  if (parse_call(call_in, call) == CallParse::kOk) {
    std::vector<std::uint8_t> emitted;
    xdr::XdrWriter out(emitted);
    emit_call(out, call);
    xdr::XdrReader again(emitted);
    CallHeader back;
    check(parse_call(again, back) == CallParse::kOk && back == call && again.at_end());
    check(emitted.size() == call_in.position());
  }
  ReplyHeader reply;
  xdr::XdrReader reply_in(octets);
  if (parse_reply(reply_in, reply)) {
    std::vector<std::uint8_t> emitted;
    xdr::XdrWriter out(emitted);
    emit_reply(out, reply);
    xdr::XdrReader again(emitted);
    ReplyHeader back;
    check(parse_reply(again, back) && back == reply && again.at_end());
    check(!describe(reply).empty());
  }
  if (const auto auth = parse_auth_sys(octets)) {
    const auto back = parse_auth_sys(emit_auth_sys(*auth).body);
    check(back && *back == *auth);
  }
  return 0;
}
