// The exchange of transport properties of both drafts of version 2 with an arbitrary peer. The input is an octet of
// settings, then messages, each as it is or made of a list of properties.
#include <memory>
#include <vector>

#include "fuzz/op_stream.h"
#include "rpcrdma/terms.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_cel05/property_exchange.h"
#include "rpcrdma/v2_wg07/header.h"
#include "rpcrdma/v2_wg07/property_exchange.h"

namespace {

using namespace weft;
using namespace weft::rpcrdma;
using fuzz::Input;
using fuzz::must;
using Octets = PropertyExchange::Octets;

constexpr std::size_t kLongest = 1024;  // of a message of this end, which a peer of any size of Receives takes
constexpr std::size_t kMaxMessage = 4096;

template <typename Header>
bool is_valid(ConstBytes message) {
  Header header;
  ConstBytes payload;
  return parse_message(message, header, payload) == v2::HeaderError::kNone && payload.empty();
}

template <typename Header, typename Body>
Octets message_of(std::uint32_t xid, Body body) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, Header{.xid = xid, .credit = 8, .body = std::move(body)});
  return octets;
}

v2::Propset some_set(Input& input) {
  v2::Propset set;
  for (int num = input.u8() & 7; num > 0; --num) {
    const std::uint8_t kind = input.u8();
    v2::Propval value{.which = kind & 15u};
    if ((kind & 0x80) != 0) value.which = input.u32();
    const ConstBytes data = input.bytes((kind & 0x40) != 0 ? input.u8() : 4);
    value.data.assign(data.begin(), data.end());
    set.push_back(std::move(value));
  }
  return set;
}

v2::Propsubset some_subset(Input& input) {
  v2::Propsubset subset;
  for (int num = input.u8() & 3; num > 0; --num) subset.words.push_back(input.u32());
  return subset;
}

Octets cel05_message(Input& input) {
  using Header = v2_cel05::Header;
  const std::uint8_t kind = input.u8();
  switch (kind & 3) {
    case 0: {
      v2_cel05::Connprop body{.start = some_set(input)};
      body.nochg = some_subset(input);
      return message_of<Header>(kind, std::move(body));
    }
    case 1: return message_of<Header>(kind, v2_cel05::Reqprop{some_set(input)});
    case 2: {
      v2_cel05::Resprop body{.done = some_subset(input)};
      body.rejected = some_subset(input);
      body.other = some_set(input);
      return message_of<Header>(kind, std::move(body));
    }
    default: return message_of<Header>(kind, v2_cel05::Updprop{some_set(input)});
  }
}

Octets wg07_message(Input& input) {
  using Header = v2_wg07::Header;
  const std::uint8_t kind = input.u8();
  switch (kind & 7) {
    case 0: return message_of<Header>(kind, v2_wg07::CallInline{});
    case 1: return message_of<Header>(kind, v2_wg07::Grant{});
    case 2:
    case 3:
    case 4: return message_of<Header>(kind, v2_wg07::ConnpropMiddle{some_set(input)});
    default: return message_of<Header>(kind, v2_wg07::ConnpropFinal{some_set(input)});
  }
}

Octets raw_message(Input& input) {
  const ConstBytes octets = input.bytes(input.u16() & (kMaxMessage - 1));
  return {octets.begin(), octets.end()};
}

void check_peer(const PropertyExchange& exchange, std::size_t longest_heard) {
  if (!exchange.peer()) return;
  const Properties& own = exchange.own();
  const Terms terms = terms_of(own, *exchange.peer(), kLongest);
  must(terms.thresholds.send <= own.send_size && terms.thresholds.receive <= own.receive_size);
  must(terms.thresholds.send >= kLongest && terms.thresholds.receive >= kLongest);
  must(terms.chunks.max_segment >= kLongest);
  if (exchange.peer()->host_auth) must(exchange.peer()->host_auth->size() <= longest_heard);
}

template <typename Header>
void run(PropertyExchange& exchange, Input& input, Octets (*make)(Input&)) {
  std::size_t longest_heard = 0;
  int num_told = 0;
  const auto check_own = [&](const Octets& octets) { must(octets.size() <= kLongest && is_valid<Header>(octets)); };
  for (int i = 0; i < 200 && !input.empty(); ++i) {
    const std::uint8_t op = input.u8();
    if (op == 0) {
      const Octets opening = exchange.open();
      if (opening.empty()) continue;
      must(++num_told == 1);
      check_own(opening);
      continue;
    }
    const Octets message = (op & 1) != 0 ? make(input) : raw_message(input);
    if (message.size() > kMaxMessage) continue;
    longest_heard = std::max(longest_heard, message.size());
    if (!exchange.is_mine(message)) continue;
    const auto before = exchange.peer();
    const PropertyExchange::Taken taken = exchange.take(message);
    must(taken.changed == (exchange.peer() != before));
    if (!taken.answer.empty()) check_own(taken.answer);
    check_peer(exchange, longest_heard);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  const std::uint8_t settings = input.u8();
  Properties own;
  if ((settings & 2) != 0) own.send_size = own.receive_size = 65536;
  if ((settings & 4) != 0) own.reverse = ReverseSupport::kGeneral;
  if ((settings & 8) != 0) own.segment_size = own.segment_count = 0xffffffff;
  if ((settings & 1) != 0) {
    run<v2_wg07::Header>(*v2_wg07::make_exchange(own), input, wg07_message);
  } else {
    run<v2_cel05::Header>(*v2_cel05::make_exchange(own), input, cel05_message);
  }
  return 0;
}
