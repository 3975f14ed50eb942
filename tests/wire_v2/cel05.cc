#include <cel05.h>

#include "tests/wire_v2/parse.h"
#include "tests/wire_v2/tables.h"
#include "tests/wire_v2/xdr_value.h"

namespace weft::wire_v2 {
namespace {

std::optional<Direction> direction_of(cel05_msg_type type) {
  if (type == RDMA2_CALL) return Direction::kCall;
  if (type == RDMA2_REPLY) return Direction::kReply;
  return std::nullopt;
}

std::vector<Property> set_of(const cel05_propset& set) {
  return properties_of(set.cel05_propset_val, set.cel05_propset_len);
}

std::vector<std::uint32_t> subset_of(const cel05_propsubset& set) {
  return {set.cel05_propsubset_val, set.cel05_propsubset_val + set.cel05_propsubset_len};
}

Error error_of(const cel05_error& error) {
  const auto& arm = error.cel05_error_u;
  const auto code = static_cast<std::uint32_t>(error.rdma_err);
  switch (error.rdma_err) {
    case RDMA2_ERR_VERS: return {code, {arm.rdma_vrange.rdma_vers_low, arm.rdma_vrange.rdma_vers_high}};
    case RDMA2_ERR_READ_CHUNKS:
    case RDMA2_ERR_WRITE_CHUNKS: return {code, {arm.rdma_max_chunks}};
    case RDMA2_ERR_SEGMENTS: return {code, {arm.rdma_max_segments}};
    case RDMA2_ERR_WRITE_RESOURCE:
      return {code, {arm.rdma_writeres.rdma_chunk_index, arm.rdma_writeres.rdma_length_needed}};
    case RDMA2_ERR_REPLY_RESOURCE: return {code, {arm.rdma_length_needed}};
    default: return {code, {}};
  }
}

void put_chunks(const cel05_chunk_lists& lists, Message& message) {
  message.direction = direction_of(lists.rdma_direction);
  message.inv_handle = lists.rdma_inv_handle;
  message.reads = read_list_of(lists.rdma_reads);
  message.writes = write_list_of(lists.rdma_writes);
  message.reply = reply_chunk_of(lists.rdma_reply);
}

void put_option(const cel05_optional& option, Message& message) {
  message.direction = direction_of(option.rdma_optdir);
  message.option = option.rdma_opttype;
  message.option_info = bytes_of(option.rdma_optinfo.rdma_optinfo_val, option.rdma_optinfo.rdma_optinfo_len);
}

void put_body(const cel05_body& body, Message& message) {
  const auto& arm = body.cel05_body_u;
  switch (body.rdma_proc) {
    case RDMA2_MSG:
    case RDMA2_NOMSG: return put_chunks(arm.rdma_chunks, message);
    case RDMA2_OPTIONAL: return put_option(arm.rdma_optional, message);
    case RDMA2_ERROR: message.error = error_of(arm.rdma_error); return;
    case RDMA2_CONNPROP:
      message.properties = set_of(arm.rdma_connprop.rdma_start);
      message.subsets = {subset_of(arm.rdma_connprop.rdma_nochg)};
      return;
    case RDMA2_REQPROP: message.properties = set_of(arm.rdma_reqprop.rdma_want); return;
    case RDMA2_RESPROP:
      message.properties = set_of(arm.rdma_resprop.rdma_other);
      message.subsets = {subset_of(arm.rdma_resprop.rdma_done), subset_of(arm.rdma_resprop.rdma_rejected)};
      return;
    case RDMA2_UPDPROP: message.properties = set_of(arm.rdma_updprop.rdma_now); return;
  }
}

}  // namespace

std::variant<Message, Fault> parse_cel05(Octets octets) {
  XdrValue<cel05_xprt_hdr> header(xdr_cel05_xprt_hdr);
  const auto len = header.read(octets);
  if (!len) return Fault{"R2-7.2.4-5", "the header is no XDR of rpcrdma2_xprt_hdr"};
  Message message;
  message.profile = Profile::kCel05;
  message.xid = header->rdma_xid;
  message.version = header->rdma_vers;
  message.credit = header->rdma_credit;
  message.type = static_cast<std::uint32_t>(header->rdma_body.rdma_proc);
  const HeaderType& type = *header_type(Profile::kCel05, message.type);
  message.kind = type.kind;
  message.direction = type.direction;
  message.header_len = *len;
  put_body(header->rdma_body, message);
  const bool has_direction =
      message.kind == Kind::kInline || message.kind == Kind::kExternal || message.kind == Kind::kOption;
  if (has_direction && !message.direction) return Fault{"R2-7.2-11", "the direction is neither CALL nor REPLY"};
  return message;
}

bool is_value_of_cel05(const Property& property) {
  if (property.id == cel05::kRbsiz) {
    XdrValue<cel05_prop_rbsiz> value(xdr_cel05_prop_rbsiz);
    return value.read(property.value) == property.value.size();
  }
  if (property.id == cel05::kBrs) {
    XdrValue<cel05_prop_brs> value(xdr_cel05_prop_brs);
    // As a word: the enum promotes to int, which would put 0x80000000 below its values.
    return value.read(property.value) == property.value.size() &&
           static_cast<std::uint32_t>(*value) <= RDMA2_BKREQSUP_GENL;
  }
  return true;
}

}  // namespace weft::wire_v2
