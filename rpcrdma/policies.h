#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// Settings of a Client or a Server for connections that are lost. Values.
namespace weft::rpcrdma {

// Protocol: a version of RPC-over-RDMA; for version 2 also its draft. Two drafts share the number and differ on the
// wire.
enum class Protocol : std::uint8_t {
  k1,       // RFC 8166
  k2Cel05,  // draft-cel-nfsv4-rpcrdma-version-two-05
  k2Wg07,   // draft-ietf-nfsv4-rpcrdma-version-two-07
};
// "1", "2-cel05", "2-wg07".
std::string_view protocol_str(Protocol protocol);
std::optional<Protocol> parse_protocol(std::string_view name);
// Every protocol that is built, best first.
std::vector<Protocol> all_protocols();

// ReconnectPolicy: how a Client reacts when an established connection ends. Off: the Client is over, and every Call
// ends with the connection. On: the Client connects again, and sends the Calls that were under way once more, under
// their XIDs. A server that does not remember these Calls may run them twice.
struct ReconnectPolicy {
  std::chrono::milliseconds max_time{0};  // how long the Client tries; 0: off
  std::uint32_t max_attempts = 0;         // how many times it tries; 0: as often as the time allows
  // How many connections in a row may end with a violation of the protocol (a Terminate by either side, a Reply that
  // invalidates a handle that its Call does not have) before the Client stays disconnected: the next connection would
  // most likely end the same way. A connection on which Calls were answered counts a quarter. A connection that lasted
  // max_delay resets the count. 0: no limit.
  std::uint32_t max_violations = 3;
  std::chrono::milliseconds first_delay{100};
  std::chrono::milliseconds max_delay{5000};
  // A Call without a Reply so long after it was sent ends the connection, and goes out again on the next one: its Reply
  // may be lost, or was discarded (RFC 8166 section 4.5). The Call's own time-out still counts from the first sending.
  // 0: the Call waits on its connection until that time-out.
  std::chrono::milliseconds retransmit_after{0};

  bool is_on() const { return max_time.count() > 0; }
};

// HealthCheckPolicy: when a NULL Call asks whether the peer still lives (RFC 8267 section 6.7.2). It needs a credit:
// ClientConfig::reserve_credit keeps one.
struct HealthCheckPolicy {
  std::chrono::milliseconds after{0};      // of silence with Calls under way; 0: never
  std::chrono::milliseconds answer{5000};  // time that the peer has to answer
  bool when_idle = false;                  // also without Calls under way
};

// DuplicateRequestLimits: limits of a server's duplicate-request cache (ServedProgram::keeps_replies).
struct DuplicateRequestLimits {
  std::size_t max_octets = 16 << 20;  // of Replies
  std::size_t max_entries = 16384;    // Calls, including running ones
  std::chrono::milliseconds max_age{120000};
};

}  // namespace weft::rpcrdma
