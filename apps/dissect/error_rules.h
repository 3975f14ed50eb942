#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "apps/dissect/call_table.h"
#include "apps/dissect/frame.h"
#include "apps/dissect/queue.h"
#include "base/bytes.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/transport_error.h"
#include "rpcrdma/v2/prefix.h"

namespace weft::apps::dissect {

struct TransportHeader;

// ErrorRules holds the errors of RPC-over-RDMA against the messages that they answer (RFC 8166 section 4.5,
// draft-cel-nfsv4-rpcrdma-version-two-05 section 7.2.4, draft-ietf-nfsv4-rpcrdma-version-two-07 section 7). The caller
// calls it only while the capture has every message of both sides until now, whole and in order. A value without I/O.
//
// An error is judged only if one message alone can be the one that it answers. The answer of a server to the first
// messages may be of another draft, which numbers the errors differently: until the version is settled, the error's XID
// and version count alone.
class ErrorRules {
 public:
  static constexpr std::size_t kMaxAsked = 64;  // of each side
  static constexpr std::size_t kMaxRefused = 64;

  // State: facts of the connection that the judgement needs.
  struct State {
    rpcrdma::Protocol protocol = rpcrdma::Protocol::k1;
    bool is_settled = false;         // the server has answered in this version with a message that is no error
    bool is_reverse = false;         // the error comes from the client
    bool has_read = false;           // its sender has read memory of the other side
    std::uint32_t num_uncaused = 0;  // FlowRules::num_uncaused of the side that gets the error
  };

  // The capture lacks messages.
  void on_lost();
  // on_other: a message that is neither a Call nor a Reply, or whose header cannot be read.
  void on_other(Side from, ConstBytes message, bool is_readable);
  void on_call(Side from, std::uint32_t xid);
  // calls: of the side that gets the error.
  void on_error(Side from, const TransportHeader& header, const CallTable& calls, const State& state, Frame& frame);
  // is_idle: no Reply can contradict anything that came so far.
  bool is_idle() const { return is_idle_; }
  // A Reply. calls: of the side that gets it.
  void on_reply(Side from, const TransportHeader& header, const CallTable& calls, rpcrdma::Protocol protocol,
                Frame& frame);
  // Any message of 2-wg07. num: its number among the messages of its side.
  void judge_type(Side from, const TransportHeader& header, std::uint32_t type, std::uint32_t num, Frame& frame) const;

  // A message that an error can answer.
  struct Asked {
    rpcrdma::v2::Prefix words;              // its first four words, which all versions share
    bool is_readable = false;               // its header
    const CallTable::Call* call = nullptr;  // null: it is no Call
  };

 private:
  struct Refused {
    std::uint32_t xid = 0;
    rpcrdma::TransportError::Code code = rpcrdma::TransportError::Code::kSystem;
  };
  struct RefusedType {
    std::uint32_t type = 0;
    std::uint32_t num_uncaused = 0;
  };
  struct Half {
    std::vector<Asked> others;  // without Calls
    bool has_forgotten = false;
    bool has_lost = false;  // the capture lacks messages, which errors can answer
    Queue<Refused> refused;
    std::optional<RefusedType> refused_type;
  };

  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }
  void judge(const Asked& asked, const TransportHeader& header, const State& state, Half& asker, Frame& frame) const;
  std::optional<Asked> asked_by(const Half& half, const TransportHeader& header, const CallTable& calls) const;

  std::array<Half, 2> halves_;
  bool is_idle_ = true;  // every half is as it began
};

}  // namespace weft::apps::dissect
