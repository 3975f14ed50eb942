#include "tests/wire_v2/tables.h"

#include <algorithm>

namespace weft::wire_v2 {
namespace {

constexpr HeaderType kCel05Types[] = {
    {cel05::kMsg, "RDMA2_MSG", Kind::kInline, {}},
    {cel05::kNomsg, "RDMA2_NOMSG", Kind::kExternal, {}},
    {cel05::kError, "RDMA2_ERROR", Kind::kError, Direction::kReply},
    {cel05::kOptional, "RDMA2_OPTIONAL", Kind::kOption, {}},
    {cel05::kConnprop, "RDMA2_CONNPROP", Kind::kProperties, {}},
    {cel05::kReqprop, "RDMA2_REQPROP", Kind::kProperties, {}},
    {cel05::kResprop, "RDMA2_RESPROP", Kind::kProperties, {}},
    {cel05::kUpdprop, "RDMA2_UPDPROP", Kind::kProperties, {}},
};

constexpr HeaderType kWg07Types[] = {
    {wg07::kError, "RDMA2_ERROR", Kind::kError, Direction::kReply},
    {wg07::kGrant, "RDMA2_GRANT", Kind::kGrant, {}},
    {wg07::kConnpropMiddle, "RDMA2_CONNPROP_MIDDLE", Kind::kProperties, {}},
    {wg07::kConnpropFinal, "RDMA2_CONNPROP_FINAL", Kind::kProperties, {}},
    {wg07::kCallExternal, "RDMA2_CALL_EXTERNAL", Kind::kExternal, Direction::kCall},
    {wg07::kCallMiddle, "RDMA2_CALL_MIDDLE", Kind::kPart, Direction::kCall},
    {wg07::kCallInline, "RDMA2_CALL_INLINE", Kind::kInline, Direction::kCall},
    {wg07::kReplyExternal, "RDMA2_REPLY_EXTERNAL", Kind::kExternal, Direction::kReply},
    {wg07::kReplyMiddle, "RDMA2_REPLY_MIDDLE", Kind::kPart, Direction::kReply},
    {wg07::kReplyInline, "RDMA2_REPLY_INLINE", Kind::kInline, Direction::kReply},
};

constexpr const char* kVersions[] = {"rdma_vers_low", "rdma_vers_high"};
constexpr const char* kMaxChunks[] = {"rdma_max_chunks"};
constexpr const char* kMaxSegments[] = {"rdma_max_segments"};
constexpr const char* kWriteResource[] = {"rdma_chunk_index", "rdma_length_needed"};
constexpr const char* kLengthNeeded[] = {"rdma_length_needed"};

constexpr ErrorCode kCel05Errors[] = {
    {1, "RDMA2_ERR_VERS", kVersions},
    {2, "RDMA2_ERR_BAD_XDR", {}},
    {3, "RDMA2_ERR_INVAL_PROC", {}},
    {4, "RDMA2_ERR_READ_CHUNKS", kMaxChunks},
    {5, "RDMA2_ERR_WRITE_CHUNKS", kMaxChunks},
    {6, "RDMA2_ERR_SEGMENTS", kMaxSegments},
    {7, "RDMA2_ERR_WRITE_RESOURCE", kWriteResource},
    {8, "RDMA2_ERR_REPLY_RESOURCE", kLengthNeeded},
    {9, "RDMA2_ERR_INVAL_OPTION", {}},
    {10, "RDMA2_ERR_SYSTEM", {}},
};

constexpr ErrorCode kWg07Errors[] = {
    {1, "RDMA2_ERR_VERS", kVersions},
    {2, "RDMA2_ERR_BAD_XDR", {}},
    {3, "RDMA2_ERR_BAD_PROPVAL", {}},
    {4, "RDMA2_ERR_INVAL_HTYPE", {}},
    {5, "RDMA2_ERR_INVAL_CONT", {}},
    {6, "RDMA2_ERR_READ_CHUNKS", kMaxChunks},
    {7, "RDMA2_ERR_WRITE_CHUNKS", kMaxChunks},
    {8, "RDMA2_ERR_SEGMENTS", kMaxSegments},
    {9, "RDMA2_ERR_WRITE_RESOURCE", kWriteResource},
    {10, "RDMA2_ERR_REPLY_RESOURCE", kLengthNeeded},
    {11, "RDMA2_ERR_VERS_MISMATCH", {}},
    {100, "RDMA2_ERR_SYSTEM", {}},
};

constexpr PropertyId kCel05Properties[] = {{cel05::kRbsiz, "RBSIZ"}, {cel05::kBrs, "BRS"}};
constexpr PropertyId kWg07Properties[] = {{wg07::kSbsiz, "SBSIZ"}, {wg07::kRbsiz, "RBSIZ"},
                                          {wg07::kRssiz, "RSSIZ"}, {wg07::kRcsiz, "RCSIZ"},
                                          {wg07::kBrs, "BRS"},     {wg07::kHostauth, "HOSTAUTH"}};

template <typename Row>
const Row* find(std::span<const Row> rows, std::uint32_t code) {
  const auto row = std::ranges::find(rows, code, &Row::code);
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace

std::span<const HeaderType> header_types(Profile profile) {
  if (profile == Profile::kCel05) return kCel05Types;
  return kWg07Types;
}

std::span<const ErrorCode> error_codes(Profile profile) {
  if (profile == Profile::kCel05) return kCel05Errors;
  return kWg07Errors;
}

std::span<const PropertyId> property_ids(Profile profile) {
  if (profile == Profile::kCel05) return kCel05Properties;
  return kWg07Properties;
}

const HeaderType* header_type(Profile profile, std::uint32_t code) {
  return find(header_types(profile), code);
}

const ErrorCode* error_code(Profile profile, std::uint32_t code) {
  return find(error_codes(profile), code);
}

const char* name_of(Profile profile) {
  return profile == Profile::kCel05 ? "cel05" : "wg07";
}

}  // namespace weft::wire_v2
