#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

// What the user of a Client or a Server may decide about connections that are lost: values.
namespace weft::rpcrdma {

// ReconnectPolicy: what a Client does when a connection that was there ends. Off: it is over, and every Call ends with
// it. On: it connects again, and the Calls that were under way go out once more, under their XIDs; so they may be run
// twice by a server that does not remember them.
struct ReconnectPolicy {
  std::chrono::milliseconds max_time{0};  // how long it tries; 0: off
  std::uint32_t max_attempts = 0;         // how often; 0: as often as the time allows
  // How many connections in a row may end with a violation of the protocol (a Terminate by either side, a Reply that
  // invalidates what is not its own) before it stays over: the next would most likely end the same way. One on which
  // Calls were answered counts a quarter, one that lasted max_delay begins the count anew. 0: that does not matter.
  std::uint32_t max_violations = 3;
  std::chrono::milliseconds first_delay{100};
  std::chrono::milliseconds max_delay{5000};
  // A Call without a Reply so long after it was sent ends the connection, to go out again on the next one: its Reply
  // may be lost, or was discarded (RFC 8166 section 4.5). Its own time-out counts from the first sending all the same.
  // 0: it stays where it is until then.
  std::chrono::milliseconds retransmit_after{0};

  bool is_on() const { return max_time.count() > 0; }
};

// HealthCheckPolicy: when a NULL Call asks whether the peer still lives (RFC 8267 section 6.7.2). It needs a credit:
// ClientConfig::reserve_credit keeps one.
struct HealthCheckPolicy {
  std::chrono::milliseconds after{0};      // of silence with Calls under way; 0: never
  std::chrono::milliseconds answer{5000};  // what the peer has for its answer
  bool when_idle = false;                  // also without Calls under way
};

// ReplayLimits: what a server's duplicate-request cache holds at most (Program::keeps_replies).
struct ReplayLimits {
  std::size_t max_octets = 16 << 20;  // of Replies
  std::size_t max_entries = 16384;    // Calls, running ones included
  std::chrono::milliseconds max_age{120000};
};

}  // namespace weft::rpcrdma
