#include "tests/wire_v2/talk.h"

#include "tests/wire_v2/fields.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

Bytes words(std::initializer_list<std::uint32_t> values, std::size_t num_zeros) {
  Bytes octets;
  for (const std::uint32_t value : values) {
    const Bytes one = word(value);
    octets.insert(octets.end(), one.begin(), one.end());
  }
  octets.resize(octets.size() + num_zeros);
  return octets;
}

}  // namespace

Bytes word(std::uint32_t value) {
  return {static_cast<std::uint8_t>(value >> 24), static_cast<std::uint8_t>(value >> 16),
          static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)};
}

Bytes rpc_call(std::uint32_t xid, std::size_t num_args) {
  return words({xid, 0, 2, 100003, 3, 0, 0, 0, 0, 0}, num_args);
}

Bytes rpc_reply(std::uint32_t xid, std::size_t num_results) {
  return words({xid, 1, 0, 0, 0, 0}, num_results);
}

Bytes slice(const Bytes& octets, std::size_t from, std::size_t to) {
  return {octets.begin() + static_cast<std::ptrdiff_t>(from), octets.begin() + static_cast<std::ptrdiff_t>(to)};
}

std::uint32_t Talk::credit(End from) const {
  constexpr std::uint32_t kAdvertised = 32;
  if (profile_ == Profile::kCel05) return kAdvertised;
  return sent_[from == kClient ? 1 : 0] + kAdvertised;
}

Message Talk::message(End from, std::uint32_t type, std::uint32_t xid) const {
  Message message;
  message.profile = profile_;
  message.xid = xid;
  message.credit = credit(from);
  message.type = type;
  message.kind = header_type(profile_, type)->kind;
  message.direction = header_type(profile_, type)->direction;
  return message;
}

Message Talk::call(End from, std::uint32_t xid, std::size_t num_args) const {
  Message call = message(from, profile_ == Profile::kCel05 ? cel05::kMsg : wg07::kCallInline, xid);
  call.direction = Direction::kCall;
  call.payload = rpc_call(xid, num_args);
  return call;
}

Message Talk::reply(End from, std::uint32_t xid, std::size_t num_results) const {
  Message reply = message(from, profile_ == Profile::kCel05 ? cel05::kMsg : wg07::kReplyInline, xid);
  reply.direction = Direction::kReply;
  reply.payload = rpc_reply(xid, num_results);
  return reply;
}

Message Talk::external_call(End from, std::uint32_t xid, const Segment& body) const {
  const bool is_cel05 = profile_ == Profile::kCel05;
  Message call = message(from, is_cel05 ? cel05::kNomsg : wg07::kCallExternal, xid);
  call.direction = Direction::kCall;
  (is_cel05 ? call.reads : call.call) = {{0, body}};
  return call;
}

Message Talk::external_reply(End from, std::uint32_t xid, const Segment& body) const {
  Message reply = message(from, profile_ == Profile::kCel05 ? cel05::kNomsg : wg07::kReplyExternal, xid);
  reply.direction = Direction::kReply;
  reply.reply = {body};
  return reply;
}

Message Talk::part(End from, std::uint32_t xid, const Bytes& payload, std::uint32_t remaining) const {
  Message part = message(from, wg07::kCallMiddle, xid);
  part.payload = payload;
  part.remaining = remaining;
  return part;
}

Message Talk::last_part(End from, std::uint32_t xid, const Bytes& payload) const {
  Message part = call(from, xid);
  part.payload = payload;
  return part;
}

Message Talk::reply_part(End from, std::uint32_t xid, const Bytes& payload, std::uint32_t remaining) const {
  Message part = message(from, wg07::kReplyMiddle, xid);
  part.payload = payload;
  part.remaining = remaining;
  return part;
}

Message Talk::properties(End from, std::uint32_t type, std::vector<Property> properties) const {
  Message told = message(from, type, 0xcafe0000 + sent_[0] + sent_[1]);
  told.properties = std::move(properties);
  const bool is_cel05 = profile_ == Profile::kCel05;
  if (is_cel05 && type == cel05::kConnprop) told.subsets.resize(1);
  if (is_cel05 && type == cel05::kResprop) told.subsets.resize(2);
  return told;
}

Message Talk::error(End from, std::uint32_t xid, std::uint32_t code) const {
  Message error = message(from, cel05::kError, xid);
  error.error = {code, std::vector<std::uint32_t>(error_code(profile_, code)->words.size(), 1)};
  if (code == kErrVers) error.error.words = {1, 2};
  return error;
}

void Talk::say(End from, const Message& message, std::optional<std::uint32_t> invalidated) {
  conversation_.send(from, encode(message), invalidated);
  ++sent_[static_cast<std::size_t>(from)];
}

void Talk::open() {
  constexpr std::uint32_t kXid = 0xffffffff;
  say(kClient, call(kClient, kXid));
  say(kServer, reply(kServer, kXid));
}

std::vector<std::string> Talk::rules() const {
  std::vector<std::string> rules;
  for (const Violation& violation : conversation_.violations()) rules.push_back(violation.rule);
  return rules;
}

}  // namespace weft::wire_v2
