#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/dissect/call_table.h"
#include "apps/dissect/frame.h"
#include "apps/dissect/transport_header.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/policies.h"

namespace weft::apps::dissect {

// The rules that a Reply breaks beside its Call and the RDMA operations between them. The Call is the one that the
// Reply answers for certain. Each function adds its findings to the frame.

// offers: whether a Call offers memory with this handle.
bool offers(const rpcrdma::ChunkListsView& lists, std::uint32_t handle);
// returns_reply_chunk: the lists have the Reply chunk that the Call offered, with its handles and offsets.
bool returns_reply_chunk(const rpcrdma::ChunkListsView& lists, const rpcrdma::ChunkListsView& offered);

// judge_unasked: no open Call has the XID of the Reply. had: of the requester's Calls.
void judge_unasked(CallTable::Had had, std::uint32_t xid, Frame& frame);

// judge_invalidated: the Reply invalidates an STag. Version 1 allows those that the Call offers, version 2 the one that
// the Call names.
void judge_invalidated(rpcrdma::Protocol protocol, const CallTable::Call& call, std::uint32_t invalidated,
                       Frame& frame);

// judge_written: a Reply says how many octets each chunk got (RFC 8166 sections 3.4.6 and 4.3.3). The Writes came
// before it.
void judge_written(rpcrdma::Protocol protocol, const CallTable& calls, const CallTable::Call& call,
                   const TransportHeader& header, Frame& frame);

// judge_continued (W2-6.6.3-3): a Reply that is too long for a Send goes through the Reply chunk, if it fits there.
// len: octets of the Reply, which came in parts. max_send: octets of a Send that the requester takes.
void judge_continued(const CallTable::Call& call, const TransportHeader& header, std::size_t len, std::size_t max_send,
                     Frame& frame);

}  // namespace weft::apps::dissect
