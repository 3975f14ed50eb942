#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "rdmap/terminate.h"

namespace weft::apps::dissect {

// Deed: what a side has sent, right or wrong.
enum Deed : std::uint16_t {
  kSentMessage = 1 << 0,     // anything but a Terminate
  kSentTagged = 1 << 1,      // an RDMA Write or an RDMA Read Response with octets
  kSentRead = 1 << 2,        // an RDMA Read Request for octets
  kSentAtomic = 1 << 3,      // an Atomic Request
  kSentInvalidate = 1 << 4,  // a Send with Invalidate
  kSentExtension = 1 << 5,   // a message of RFC 7306
  kSentUntagged = 1 << 6,    // an untagged message, without Terminates
  kSentOctets = 1 << 7,      // such a message with octets
  kSentOffset = 1 << 8,      // an untagged segment with an MO above 0, or one that is not the only one of its message
  kSentQueue = 1 << 9,       // a segment for a queue that RFC 5040 does not have
  kSentTerminate = 1 << 10,
  kSentTerminates = 1 << 11,  // a second Terminate
};

// Record: what the capture knows of the side that a Terminate accuses.
struct Record {
  bool is_complete = false;                  // it has every octet of this side until now, from both startup frames on
  std::uint16_t deeds = 0;                   // of this side
  std::optional<std::uint8_t> version = {};  // of DDP and RDMAP on this connection
  bool knows_requests = false;               // all RDMA Reads and Atomics that are under way, and the other side's IRD
  bool may_lack_ird = false;  // the accuser is the initiator, and its IRD may be lower than the responder's ORD
  bool may_lack_rtr = false;  // the accuser is the initiator, and may have no RTR of those that the Reply names
  bool is_set_up = false;     // the accuser has sent a message before, or there was no set-up of RFC 6581
};

// Trial says of one code of Terminates what the octets of the accused side would have to be.
struct Trial {
  enum class Proof : std::uint8_t {
    kOwn,     // a failure of the sender's own: nobody is accused
    kNever,   // no end may send the code
    kShown,   // the octets show the fault wherever it is
    kHidden,  // the fault rests on the receiver's memory, rights, Receives or choice
  };
  // Header: the header in a Terminate.
  struct Header;

  rdmap::Layer layer = rdmap::Layer::kRdma;
  std::uint8_t etype = 0;
  int code = 0;  // -1: any
  Proof proof = Proof::kHidden;
  std::uint16_t deeds = 0;                  // the accused has done one of these; 0: it need not
  bool (*can_be)(const Header&) = nullptr;  // whether a message with this header can have the fault; null: any can
  std::string_view without = {};            // what a capture shows that refutes the accusation
};
std::span<const Trial> trials();
// find_trial returns null for a code that is not registered.
const Trial* find_trial(const rdmap::Terminate& what);

// refutation_of weighs a Terminate. has_shown: whether messages of the accused side have the fault of a code, as far as
// octets show it. Returns what the octets show against the accusation; empty if nothing does.
struct Shown {
  virtual bool has_shown(const rdmap::Terminate& fault) const = 0;
  virtual bool has_shown_any() const = 0;  // a fault for which a receiver ends the connection
 protected:
  ~Shown() = default;
};
std::string refutation_of(const rdmap::TerminateMessage& message, const Record& accused, const Shown& shown);

}  // namespace weft::apps::dissect
