#include "apps/dissect/rule_ids.h"

#include <cstddef>

namespace weft::apps::dissect {

namespace {

using rpcrdma::Protocol;

struct Ids {
  RpcRule rule;
  std::string_view version1, cel05, wg07;
};
constexpr Ids kIds[] = {
    {RpcRule::kPayload, "R1-5.5.2-01", "R2-7.2.1-1", "W2-7.2.1-1"},
    {RpcRule::kXid, "R1-5.2.1-01", "R2-7.2.4-5", "W2-7.2-1"},
    {RpcRule::kPosition, "R1-4.4.5-05", "R1-4.4.5-05", "W2-4.5.1-2"},
    {RpcRule::kWrap, "R1-5.5-02", "R2-7.2.4-5", "W2-7.2.1-1"},
    {RpcRule::kReplyReadList, "R1-5.3.1-02", "R1-5.3.1-02", "W2-6.6.1-1"},
    {RpcRule::kNumSegments, "R1-4.4.6-05", "R1-4.4.6-05", "W2-4.5.2.1-2"},
    {RpcRule::kSegments, "R1-4.4.6-04", "R1-4.4.6-04", "W2-4.5.2.1-2"},
    {RpcRule::kNumChunks, "R1-4.4.6-09", "R1-4.4.6-09", "W2-4.5.2.1-2"},
    {RpcRule::kReplyChunk, "R1-5.3.3-05", "R1-5.3.3-05", "W2-6.3.8-2"},
    {RpcRule::kWritten, "R1-4.4.6.1-03", "R1-4.4.6.1-03", "W2-4.5.2.1-2"},
    {RpcRule::kReplyWritten, "R1-5.3.3-05", "R1-5.3.3-05", "W2-6.3.8-2"},
    {RpcRule::kRoundup, "R1-4.4.6.1-02", "R1-4.4.6.1-02", "W2-4.5.2.4-2"},
    {RpcRule::kReadChunkLen, "R1-4.4.4.1-03", "R1-4.4.4.1-03", "W2-4.5.3.1-2"},
    {RpcRule::kArgument, "R1-8.1.1-01", "R1-8.1.1-01", "W2-4.4.2-1"},
    {RpcRule::kResult, "R1-8.1.1-03", "R1-8.1.1-03", "W2-4.4.2-1"},
    {RpcRule::kChunkOrder, "U1-6.4.1-03", "U1-6.4.1-03", "U2-5.4.1-4"},
    {RpcRule::kEligibleResult, "R1-8.1.1-04", "R1-8.1.1-04", "W2-A.1-1"},
    {RpcRule::kCredits, "R1-4.3.1-04", "R2-7.2.2-10", "W2-4.2.1-8"},
    {RpcRule::kFirstReply, "R1-4.3.3-02", "R2-8-1", "W2-4.3-1"},
    {RpcRule::kZeroCredits, "R1-4.3.1-05", "R2-7.2.2-10", ""},
    {RpcRule::kNotSolicited, "R1-4.3.2-16", "R2-7.2.3-3", "W2-6.5-2"},
    {RpcRule::kInvalidated, "R1-4.3.2-16", "R2-7.2.3-4", "W2-6.5-2"},
    {RpcRule::kNamedHandle, "", "R2-7.2.3-1", "W2-6.5-1"},
    {RpcRule::kErrorXid, "R1-5.5-04", "R1-5.5-04", "W2-7-2"},
    {RpcRule::kErrorVersion, "R1-5.5-05", "R1-5.5-05", "W2-7-2"},
    {RpcRule::kVersionRange, "R1-5.5.1-01", "R2-8.2-1", "W2-4.3.2-1"},
    {RpcRule::kVersionError, "R1-5.5.1-01", "R2-7.2.4-8", "W2-7.1.2-1"},
    {RpcRule::kTypeError, "", "R2-7.2.4-4", "W2-6.1-4"},
    {RpcRule::kBadXdr, "R1-5.5.2-01", "R2-7.2.4-5", "W2-7.2.1-1"},
    {RpcRule::kProcessed, "", "R2-7.2.4-6", "W2-7.2.1-1"},
    {RpcRule::kReadChunks, "", "R2-7.2.4-9", "W2-7.3.1-1"},
    {RpcRule::kWriteChunks, "", "R2-7.2.4-13", "W2-7.3.2-1"},
    {RpcRule::kSegmentLimit, "", "R2-7.2.4-16", "W2-7.3.3-1"},
    {RpcRule::kWriteResource, "", "R2-7.2.4-17", "W2-7.3.4-1"},
    {RpcRule::kChunkIndex, "", "R2-7.2.4-18", "W2-7.3.4-1"},
    {RpcRule::kChunkLength, "", "R2-7.2.4-19", "W2-7.3.4-1"},
    {RpcRule::kReplyResource, "", "R2-7.2.4-22", "W2-7.3.5-1"},
    {RpcRule::kThreshold, "R1-5.2.4-05", "R2-3.3-3", "W2-4.2.2-2"},
    {RpcRule::kBodyPadding, "R1-4.5.3-09", "R1-4.5.3-09", "W2-4.5.3-1"},
    {RpcRule::kInlineRoundup, "R1-4.4.6.1-04", "R1-4.4.6.1-04", "R1-4.4.6.1-04"},
    {RpcRule::kGssControl, "R1-10.2.2-01", "R1-10.2.2-01", "W2-11.2.2-1"},
    {RpcRule::kGssWrapped, "R1-10.2.2.3-01", "R1-10.2.2.3-01", "W2-11.2.2.3-1"},
};

constexpr bool stand_in_order() {
  std::size_t i = 0;
  for (const Ids& ids : kIds) {
    if (static_cast<std::size_t>(ids.rule) != i++) return false;
  }
  return i == static_cast<std::size_t>(RpcRule::kGssWrapped) + 1;
}
static_assert(stand_in_order());

}  // namespace

std::string_view requirement_of(RpcRule rule, Protocol protocol) {
  const Ids& ids = kIds[static_cast<std::size_t>(rule)];
  switch (protocol) {
    case Protocol::k1: return ids.version1;
    case Protocol::k2Cel05: return ids.cel05;
    case Protocol::k2Wg07: return ids.wg07;
  }
  return "";
}

std::string_view refusal_of(Protocol protocol) {
  return protocol == Protocol::k1 ? "the responder answers RDMA_ERROR with ERR_CHUNK: the RPC fails"
                                  : "the responder answers RDMA2_ERROR with BAD_XDR: the RPC fails";
}

}  // namespace weft::apps::dissect
