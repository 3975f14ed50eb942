#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "apps/dissect/call_table.h"
#include "apps/dissect/frame.h"
#include "apps/dissect/gss.h"
#include "apps/dissect/program_text.h"
#include "apps/dissect/transport_header.h"
#include "base/bytes.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/policies.h"

// The rules of RPC-over-RDMA that one message shows, or a Reply beside its Call.
namespace weft::apps::dissect {

// header_fault names the rule that a message breaks which has no header of `protocol` that can be read.
// to_responder: it goes to the side that answers Calls. is_settled: the server has answered in this version before.
Finding header_fault(rpcrdma::Protocol protocol, ConstBytes message, bool to_responder, bool is_settled);

// judge_header judges a header that can be read, and the first words of its payload. The RPC message is whole.
void judge_header(rpcrdma::Protocol protocol, const TransportHeader& header, ConstBytes payload, bool to_responder,
                  Frame& frame);

// judge_xid holds the first octets of an RPC message in a chunk against the XID of its header.
void judge_xid(rpcrdma::Protocol protocol, std::uint32_t xid, ConstBytes head, Frame& frame);

// judge_returned compares the lists of a Reply with those that its Call offered (RFC 8166 section 3.4.6).
// In version 1 an unused Reply chunk comes back, too.
void judge_returned(rpcrdma::Protocol protocol, const rpcrdma::ChunkListsView& offered,
                    const rpcrdma::ChunkListsView& returned, Frame& frame);

// WrittenChunk: octets of a chunk, over its segments.
struct WrittenChunk {
  std::uint64_t returned = 0;  // as the Reply says
  std::uint64_t whole = 0;     // of these, brought by RDMA Writes from the start of a segment on, without a hole
  std::uint64_t more = 0;      // behind these, up to the last one that a Write brought
};
// judge_written_chunk compares the octets that a Reply says a chunk got with those that RDMA Writes brought.
void judge_written_chunk(rpcrdma::Protocol protocol, const WrittenChunk& chunk, bool is_reply_chunk, Frame& frame);

// judge_arguments holds the Read chunks of a Call against its arguments (RFC 8166 sections 3.4.5 and 6.1). rpc_len: of
// the RPC header; arguments begin behind it.
void judge_arguments(rpcrdma::Protocol protocol, const ProcedureKey& procedure, ConstBytes args, std::size_t rpc_len,
                     const rpcrdma::ChunkListsView& lists, Frame& frame);

// num_eligible_results says how many results of a Reply to this Call may be in Write chunks. Empty: not known.
std::optional<std::size_t> num_eligible_results(const ProcedureKey& procedure, ConstBytes args,
                                                std::span<const std::size_t> reduced);

// judge_results holds the Write chunks of a Reply whose RPC succeeded against its results (RFC 8166 section 6.1).
// results: whole, without the RPC header. brought: octets by Write chunk. walked, items: of walk_results.
void judge_results(rpcrdma::Protocol protocol, const CallTable::Call& call, ConstBytes results,
                   std::span<const std::uint32_t> brought, rpcrdma::Walked walked,
                   std::span<const std::optional<rpcrdma::EligibleItem>> items, Frame& frame);

// judge_no_results: the RPC has failed, so that no result is in a Write chunk.
void judge_no_results(rpcrdma::Protocol protocol, std::span<const std::uint32_t> brought, Frame& frame);

// judge_gss: RPCSEC_GSS forbids chunks for wrapped arguments and for its own messages (RFC 8166 section 8.2.2). lists:
// of a Call.
void judge_gss(rpcrdma::Protocol protocol, GssUse use, const rpcrdma::ChunkListsView& lists, Frame& frame);
// judge_gss_reply: the same for the Reply. lists: of the Reply.
void judge_gss_reply(rpcrdma::Protocol protocol, GssUse use, const rpcrdma::ChunkListsView& lists, Frame& frame);

}  // namespace weft::apps::dissect
