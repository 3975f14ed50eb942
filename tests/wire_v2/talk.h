#pragma once

#include "tests/wire_v2/conversation.h"

namespace weft::wire_v2 {

inline constexpr End kClient = End::kClient, kServer = End::kServer;
inline constexpr std::uint32_t kXid = 7;  // of most tests

Bytes word(std::uint32_t value);
Bytes rpc_call(std::uint32_t xid, std::size_t num_args = 0);  // octets of arguments
Bytes rpc_reply(std::uint32_t xid, std::size_t num_results = 0);
Bytes slice(const Bytes& octets, std::size_t from, std::size_t to);

// Talk plays both ends of a conversation for a test. It fills in the fields of a healthy end, and a test may change
// them.
class Talk {
 public:
  explicit Talk(Profile profile) : profile_(profile), conversation_(profile) {}

  // Messages with a good credit value for this end, as of now.
  Message message(End from, std::uint32_t type, std::uint32_t xid = 0) const;
  Message call(End from, std::uint32_t xid, std::size_t num_args = 0) const;
  Message reply(End from, std::uint32_t xid, std::size_t num_results = 0) const;
  Message external_call(End from, std::uint32_t xid, const Segment& body) const;
  Message external_reply(End from, std::uint32_t xid, const Segment& body) const;
  Message part(End from, std::uint32_t xid, const Bytes& payload, std::uint32_t remaining) const;
  Message last_part(End from, std::uint32_t xid, const Bytes& payload) const;
  Message reply_part(End from, std::uint32_t xid, const Bytes& payload, std::uint32_t remaining) const;
  Message properties(End from, std::uint32_t type, std::vector<Property> properties) const;
  Message error(End from, std::uint32_t xid, std::uint32_t code) const;

  void say(End from, const Message& message, std::optional<std::uint32_t> invalidated = {});
  // One RPC without arguments and results: both ends know version and credits from here on.
  void open();
  Conversation& conversation() { return conversation_; }
  std::vector<std::string> rules() const;

 private:
  std::uint32_t credit(End from) const;

  Profile profile_;
  Conversation conversation_;
  std::array<std::uint32_t, 2> sent_{};
};

}  // namespace weft::wire_v2
