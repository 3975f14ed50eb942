#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "apps/dissect/frame.h"
#include "apps/dissect/rdmap_decoder.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/policies.h"

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
  bool has_payload = false;        // the Payload stream of a whole RPC message follows
  rpcrdma::ChunkListsView lists = {};
  std::size_t len = 0;  // octets of the header
};

// RpcDecoder reads RPC-over-RDMA (RFC 8166, and both drafts of version 2) and ONC RPC in the Sends of a connection, and
// joins RDMA operations with the Calls whose chunks they serve. A value without I/O. It remembers at most kMaxCalls
// Calls of each direction, and the segments of their chunks.
class RpcDecoder final : public UpperLayer {
 public:
  static constexpr std::size_t kMaxCalls = 4096;
  static constexpr std::size_t kMaxSegments = 65536;
  static constexpr std::uint32_t kMaxForeign = 16;  // after so many, the connection carries something else

  explicit RpcDecoder(const Options& options) : options_(options) {}

  void on_send(const Send& send, Frame& frame) override;
  void on_transfer(const Transfer& transfer, Frame& frame, LayerWriter& layer) override;

 private:
  struct Call {
    std::uint32_t program = 0, version = 0, procedure = 0;
    bool is_known = false;  // the capture has its RPC header
    Timestamp time{};
    std::vector<std::uint32_t> handles = {};
  };
  // Segment: memory of a side that one of its Calls offered.
  struct Segment {
    enum class Use : std::uint8_t { kCall, kArgument, kResult, kReply };
    Use use = Use::kArgument;
    std::uint32_t xid = 0;
    std::uint32_t index = 0;  // kArgument: the Position. kResult: the number of the Write chunk, from 1
    bool is_first = false;    // kCall, kReply: of its chunk
  };
  struct Half {
    std::unordered_map<std::uint32_t, Call> calls;        // by XID, of the Calls that this side sent
    std::unordered_map<std::uint32_t, Segment> segments;  // by handle, of the memory of this side
    // By the STag where the octets of this side's RDMA Reads go: the handle that they come from.
    std::unordered_map<std::uint32_t, std::uint32_t> read_sources;
  };

  static std::optional<rpcrdma::Protocol> guess(ConstBytes message);
  std::optional<TransportHeader> header_of(ConstBytes message);
  void tell_header(const TransportHeader& header, const Send& send, Frame& frame);
  void on_payload(const TransportHeader& header, const Send& send, Frame& frame);
  // at: where the RPC message begins in the Send.
  void tell_call(Call& call, ConstBytes payload, const TransportHeader& header, std::size_t at, Frame& frame,
                 LayerWriter& layer);
  void tell_reply(Side caller, ConstBytes payload, const TransportHeader& header, std::size_t at, Frame& frame,
                  LayerWriter& layer);
  void tell_in_chunk(const Transfer& transfer, Side owner, const Segment& segment, Frame& frame);
  void remember(const TransportHeader& header, Side from, Frame& frame);
  void forget(Side from, std::uint32_t xid);
  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }

  const Options& options_;
  std::optional<rpcrdma::Protocol> protocol_;
  std::uint32_t num_foreign_ = 0;  // Sends that are no RPC-over-RDMA
  std::array<Half, 2> halves_;
};

// parse_transport_header reads a header of `protocol`. Empty: the message is none.
std::optional<TransportHeader> parse_transport_header(rpcrdma::Protocol protocol, ConstBytes message);

}  // namespace weft::apps::dissect
