#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "apps/dissect/call_table.h"
#include "apps/dissect/callback_rules.h"
#include "apps/dissect/error_rules.h"
#include "apps/dissect/flow_rules.h"
#include "apps/dissect/frame.h"
#include "apps/dissect/held_entries.h"
#include "apps/dissect/held_messages.h"
#include "apps/dissect/message_parts.h"
#include "apps/dissect/pending_reads.h"
#include "apps/dissect/property_rules.h"
#include "apps/dissect/rdmap_decoder.h"
#include "apps/dissect/rpc_layer.h"
#include "apps/dissect/transport_header.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/private_data.h"

namespace weft::apps::dissect {

// RpcDecoder reads RPC-over-RDMA (RFC 8166, and both drafts of version 2) and ONC RPC in the Sends of a connection, and
// joins RDMA operations with the Calls whose chunks they serve. A value without I/O. Its memory is that of its
// CallTables, PendingReads and MessageParts.
class RpcDecoder final : public UpperLayer {
 public:
  static constexpr std::uint32_t kMaxForeign = 16;  // after so many, the connection carries something else

  // The references outlive the decoder.
  // header: of the message under way; all connections may share it, for its memory.
  RpcDecoder(const Options& options, TransportHeader& header, CallTable::Pool& pool, HeldMessages& messages,
             HeldEntries& entries)
      : options_(options), header_(header), halves_{Half(messages, entries, pool), Half(messages, entries, pool)} {}

  // Side::kClient is known to be the side that connected; else it is a guess.
  void on_sides_known() { knows_sides_ = true; }
  // The private data of both sides (RFC 8797).
  void on_private_data(const rpcrdma::PrivateData& client, const rpcrdma::PrivateData& server);
  void on_send(const Send& send, Frame& frame) override;
  void on_gap(Side from) override;
  void on_resumed(Side from, std::optional<std::uint32_t> num_lost) override;
  void on_overtaken(Side of) override { half(of).calls.on_overtaken(); }
  void on_caught_up(Side of) override { half(of).calls.on_caught_up(); }
  void on_written(Side from, std::uint32_t stag, std::uint64_t to, std::uint64_t len) override {
    half(other(from)).calls.note_write(stag, to, len);
  }
  void on_transfer(const Transfer& transfer, Frame& frame, LayerWriter& layer) override;
  // Why the rules about both sides are not judged. Empty: they are.
  std::string_view why_unjudged() const;
  // Why the rules that need missing octets are not judged. Empty: none of a Send are missing.
  std::string_view why_uncertain() const { return saw_short_ ? "the capture cut a packet" : std::string_view(); }
  // Why, for a time, RDMA Writes and Reads outside the memory of open Calls are passed over. Empty: they are not.
  std::string_view why_unjudged_memory() const;

 private:
  using Call = CallTable::Call;
  using Segment = CallTable::Segment;
  struct Half {
    Half(HeldMessages& messages, HeldEntries& entries, CallTable::Pool& pool)
        : calls(entries, pool), reads(entries), parts(messages) {}

    CallTable calls;  // that this side sent
    PendingReads reads;
    MessageParts parts;
    std::size_t max_send = SIZE_MAX;  // octets of a Send that the other side says it can take
    bool has_read = false;            // memory of the other side
    bool has_gap = false;             // the capture may lack Sends since the last one
  };

  // Reads header_. False: the message has none.
  bool read_header(ConstBytes message, Side from);
  bool is_to_responder(const TransportHeader& header, const Send& send);
  bool may_answer_unknown(std::uint32_t xid, const Send& send) const;
  void tell_header(const TransportHeader& header, const Send& send, Frame& frame);
  // Payload: an RPC message, and its place in the Send.
  struct Payload {
    ConstBytes octets;
    std::size_t at;
    bool is_whole;          // in one piece, and all of it
    std::size_t len;        // of the whole message, where it came in parts
    bool has_front = true;  // false: the capture may lack its first parts
  };
  // joined: takes a message that came in parts, and outlives the Payload.
  Payload payload_of(const TransportHeader& header, const Send& send, MessageParts::Joined& joined);
  void judge_send(const Send& send, Frame& frame);
  std::size_t max_send_of_version2(Side from) const;
  void on_cut(const Send& send, const TransportHeader* header);
  void on_unreadable(const Send& send, Frame& frame);
  // Whether the header of a Send that cannot be read has the version of the connection, or should have it.
  bool is_due_version(const Send& send) const;
  void on_error(const TransportHeader& header, const Send& send, bool to_responder, Frame& frame);
  // call: the open Call with the XID of the message; null for none.
  void judge_reply(const TransportHeader& header, const Call* call, const Send& send, Frame& frame);
  void on_call(const TransportHeader& header, const Send& send, const Payload& payload, Frame& frame);
  void on_reply(const TransportHeader& header, const Call* call, const Send& send, const Payload& payload,
                Frame& frame);
  // at: where the RPC message begins in the Send. is_whole: the message is in one piece. Returns what the Call says of
  // callbacks; empty if it cannot be read.
  std::optional<BackChannel> tell_call(Call& call, ConstBytes payload, const TransportHeader& header, std::size_t at,
                                       bool is_whole, Frame& frame);
  // Rest: where the octets of a Reply are that are not in its Payload. kElsewhere: in chunks, or in other Sends.
  enum class Rest : std::uint8_t { kNone, kCutByCapture, kElsewhere };
  void tell_reply(const Call* call, ConstBytes payload, const TransportHeader& header, std::size_t at, Rest rest,
                  Frame& frame);
  void tell_outcome(const Call& call, ConstBytes results, std::size_t at, const TransportHeader& header, Rest rest,
                    RpcLayer& layer, Frame& frame);
  void tell_use(const Segment& segment, Side owner, LayerWriter& layer);
  void judge_place(const Transfer& transfer, const CallTable::Memory& memory, Frame& frame);
  void take_chunk(const Transfer& transfer, Side owner, const Segment& segment, Frame& frame);
  // Whether a message of `from` can be held against those of the other side: none of these is missing that it may
  // answer, but for those of which on_resumed has told. A Send that the capture cut may have offered any memory.
  bool is_judging(bool in_order, Side from) const {
    return in_order && !saw_cut_ && !halves_[static_cast<std::size_t>(other(from))].has_gap;
  }
  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }

  const Options& options_;
  TransportHeader& header_;
  std::optional<rpcrdma::Protocol> protocol_;
  bool knows_sides_ = false;
  bool may_invalidate_ = true;  // false: a side says that its STags may not be invalidated from afar
  bool is_settled_ = false;     // protocol_ stays
  bool saw_gap_ = false;
  bool saw_short_ = false;         // a Send of which the capture lacks octets behind its header
  bool saw_cut_ = false;           // a Send of which the capture lacks octets: it may have been a Call with any chunks
  std::uint32_t num_foreign_ = 0;  // Sends that are no RPC-over-RDMA
  FlowRules flow_;
  ErrorRules errors_;
  PropertyRules properties_;
  CallbackRules callbacks_;
  std::array<Half, 2> halves_;
};

}  // namespace weft::apps::dissect
