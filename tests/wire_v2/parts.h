#pragma once

#include <functional>
#include <optional>

#include "tests/wire_v2/message.h"

namespace weft::wire_v2 {

// Parts: RPC messages and properties that one end sends in several messages (wg07). GRANT and ERROR may stand anywhere,
// because two ends without credits in the middle of a sequence could not go on otherwise.
class Parts {
 public:
  using Report = std::function<void(const char* rule, const char* text)>;

  // begins: the first part of an RPC message. joins: a later part of it, or its end.
  enum class Place : std::uint8_t { kAlone, kBegins, kJoins, kEnds };
  Place on_message(const Message& message, const Report& report);
  // The Payload stream, whole, once on_message has returned kAlone or kEnds for an RPC message.
  const Bytes& payload() const { return payload_; }
  // forget: the peer refused the message with this XID. Its later parts do not count.
  void forget(std::uint32_t xid);
  bool is_forgotten() const { return forgotten_; }

 private:
  void on_properties(const Message& message, const Report& report);
  bool belongs(const Message& message, const Report& report) const;

  std::optional<Message> last_;  // the last part, while the RPC message goes on
  Bytes payload_;
  bool forgotten_ = false;
  bool in_properties_ = false;
  bool properties_are_told_ = false;
};

}  // namespace weft::wire_v2
