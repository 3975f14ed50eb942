#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "apps/dissect/call_table.h"
#include "apps/dissect/callback_rules.h"
#include "apps/dissect/error_rules.h"
#include "apps/dissect/flow_rules.h"
#include "apps/dissect/frame.h"
#include "apps/dissect/property_rules.h"
#include "apps/dissect/rdmap_decoder.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/transport_error.h"

namespace weft::apps::dissect {

// TransportHeader: an RPC-over-RDMA header of any version, as far as the dissector speaks of it.
struct TransportHeader {
  std::uint32_t xid = 0;
  std::uint32_t version = 0;
  std::uint32_t credit = 0;
  std::string_view type = {};      // the name of its type: "RDMA_MSG"
  std::string text = {};           // what else there is to say
  std::optional<bool> reply = {};  // the header's word on the direction; empty: it has none
  bool external = false;           // the RPC message is in a chunk
  bool has_payload = false;        // the Payload stream of a whole RPC message follows, or the last part of one
  bool is_middle = false;          // a part of the Payload stream follows, and more come in other messages
  rpcrdma::ChunkListsView lists = {};
  std::uint32_t inv_handle = 0;  // version 2: the STag that the Reply to this Call may invalidate; 0 for none
  std::size_t len = 0;           // octets of the header
  std::optional<rpcrdma::TransportError> error = {};
};

// RpcDecoder reads RPC-over-RDMA (RFC 8166, and both drafts of version 2) and ONC RPC in the Sends of a connection, and
// joins RDMA operations with the Calls whose chunks they serve. A value without I/O. Its memory is that of two
// CallTables and of the RDMA Reads under way.
class RpcDecoder final : public UpperLayer {
 public:
  static constexpr std::size_t kMaxReads = 65536;
  static constexpr std::size_t kMaxParts = 1 << 20;
  static constexpr std::uint32_t kMaxForeign = 16;  // after so many, the connection carries something else

  explicit RpcDecoder(const Options& options) : options_(options) {}

  // Side::kClient is known to be the side that connected; else it is a guess.
  void on_sides_known() { knows_sides_ = true; }
  // The private data of both sides (RFC 8797).
  void on_private_data(const rpcrdma::PrivateData& client, const rpcrdma::PrivateData& server);
  void on_send(const Send& send, Frame& frame) override;
  void on_gap(Side from) override;
  void on_written(Side from, std::uint32_t stag, std::uint64_t to, std::uint64_t len) override {
    half(other(from)).calls.note_write(stag, to, len);
  }
  void on_transfer(const Transfer& transfer, Frame& frame, LayerWriter& layer) override;
  // Whether the capture cut a Send, which may have been a Call with any chunks.
  bool saw_cut() const { return saw_cut_; }

 private:
  using Call = CallTable::Call;
  using Segment = CallTable::Segment;
  // Read: an RDMA Read under way.
  struct Read {
    std::uint32_t stag = 0;  // of its source
    std::uint64_t to = 0;
    Timestamp time{};
  };
  struct Half {
    CallTable calls;  // that this side sent
    // Of this side, by the STag and TO where their octets go; of one place in the order of the requests.
    std::multimap<std::pair<std::uint32_t, std::uint64_t>, Read> reads;
    std::vector<std::uint8_t> parts;  // of a message in several Sends; at most kMaxParts octets
    std::uint32_t parts_xid = 0;
    std::size_t max_send = SIZE_MAX;  // octets of a Send that the other side says it can take
    bool has_read = false;            // memory of the other side
  };

  static std::optional<rpcrdma::Protocol> guess(ConstBytes message);
  std::optional<TransportHeader> header_of(ConstBytes message, Side from);
  bool is_to_responder(const TransportHeader& header, const Send& send);
  void tell_header(const TransportHeader& header, const Send& send, Frame& frame);
  // Payload: an RPC message, and its place in the Send.
  struct Payload {
    ConstBytes octets;
    std::size_t at;
    bool is_whole;
  };
  Payload payload_of(const TransportHeader& header, const Send& send);
  void judge_send(const Send& send, Frame& frame);
  std::size_t max_send_of_version2(Side from) const;
  void judge_continued(const TransportHeader& header, const Call& call, const Send& send, std::size_t len,
                       Frame& frame) const;
  void judge_parts(const TransportHeader& header, Side from, Frame& frame);
  void on_unreadable(const Send& send, Frame& frame);
  void on_error(const TransportHeader& header, const Send& send, bool to_responder, Frame& frame);
  void judge_written(const CallTable& calls, const Call& call, const TransportHeader& header, Frame& frame) const;
  void judge_reply(const TransportHeader& header, const Send& send, Frame& frame);
  void judge_invalidated(const Call& call, std::uint32_t invalidated, Frame& frame) const;
  void on_call(const TransportHeader& header, const Send& send, const Payload& payload, Frame& frame);
  void on_reply(const TransportHeader& header, const Send& send, const Payload& payload, Frame& frame);
  // at: where the RPC message begins in the Send. is_whole: the message is in one piece. Returns what the Call says of
  // callbacks; empty if it cannot be read.
  std::optional<BackChannel> tell_call(Call& call, ConstBytes payload, const TransportHeader& header, std::size_t at,
                                       bool is_whole, Frame& frame);
  void tell_reply(const Call* call, ConstBytes payload, const TransportHeader& header, std::size_t at, bool is_whole,
                  Frame& frame);
  void tell_use(const Segment& segment, Side owner, LayerWriter& layer);
  void judge_place(const Transfer& transfer, const CallTable::Memory& memory, Frame& frame);
  void take_chunk(const Transfer& transfer, Side owner, const Segment& segment, Frame& frame);
  // Whether the capture has every Call and Reply until now whole. A Send that it cut may have offered any memory.
  bool is_judging(bool in_order) const { return in_order && !saw_cut_; }
  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }

  const Options& options_;
  std::optional<rpcrdma::Protocol> protocol_;
  bool knows_sides_ = false;
  bool may_invalidate_ = true;     // false: a side says that its STags may not be invalidated from afar
  bool is_settled_ = false;        // protocol_ stays
  bool saw_cut_ = false;           // a Send of which the capture lacks octets
  std::uint32_t num_foreign_ = 0;  // Sends that are no RPC-over-RDMA
  FlowRules flow_;
  ErrorRules errors_;
  PropertyRules properties_;
  CallbackRules callbacks_;
  std::array<Half, 2> halves_;
  std::vector<std::uint8_t> joined_;  // the parts of a message, put together
};

// parse_transport_header reads a header of `protocol`. Empty: the message is none.
std::optional<TransportHeader> parse_transport_header(rpcrdma::Protocol protocol, ConstBytes message);

}  // namespace weft::apps::dissect
