#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/wire_v2/conversation.h"

namespace weft::wire_v2 {

// Post: what one tapped end of a connection posted, or what arrived there from a peer that is not tapped.
struct Post {
  enum class Kind : std::uint8_t { kSend, kRead, kWrite, kArrival };
  std::size_t end = 0;
  Kind kind = Kind::kSend;
  Bytes octets;                              // kSend, kArrival
  std::optional<std::uint32_t> invalidated;  // kSend
  Segment segment;                           // kRead, kWrite: the other end's
};

// Transcript: everything that the tapped ends of a test posted, in an order in which no message precedes its cause.
class Transcript {
 public:
  void add(Post post) { posts_.push_back(std::move(post)); }
  // Both ends of one connection. Without this, each message of an end is judged alone.
  void pair(std::size_t client, std::size_t server) { server_of_[client] = server; }

  struct Verdict {
    std::vector<std::string> faults;  // each begins with its rule
    // Calls between the ends of a connection that neither a Reply nor an error answered. The transcript does not show
    // whether a Call was given up, was call-only, or was cut off with its connection.
    std::vector<std::string> unanswered;
    std::map<Profile, std::size_t> num_conversations;
    std::size_t num_messages = 0;  // of version 2
    Tally tally;                   // of what was sent
    Tally arrived;                 // of what came from peers that are not tapped
  };
  // The connection itself shows the draft: its first message that one draft alone allows. Where there is none, the
  // messages are well-formed in both drafts, or in none; then they do not count in the tally.
  Verdict judge() const;

 private:
  std::vector<Post> posts_;
  std::map<std::size_t, std::size_t> server_of_;
};

}  // namespace weft::wire_v2
