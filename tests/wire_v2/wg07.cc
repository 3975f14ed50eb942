#include <wg07.h>

#include "tests/wire_v2/parse.h"
#include "tests/wire_v2/tables.h"
#include "tests/wire_v2/xdr_value.h"

namespace weft::wire_v2 {
namespace {

constexpr std::size_t kFirstWord = 4;  // rdma_rpc_first_word, which rpcgen counts to the header

Error error_of(const wg07_hdr_error& error) {
  const auto& arm = error.wg07_hdr_error_u;
  switch (error.rdma_err) {
    case RDMA2_ERR_VERS: return {error.rdma_err, {arm.rdma_vrange.rdma_vers_low, arm.rdma_vrange.rdma_vers_high}};
    case RDMA2_ERR_READ_CHUNKS:
    case RDMA2_ERR_WRITE_CHUNKS: return {error.rdma_err, {arm.rdma_max_chunks}};
    case RDMA2_ERR_SEGMENTS: return {error.rdma_err, {arm.rdma_max_segments}};
    case RDMA2_ERR_WRITE_RESOURCE:
      return {error.rdma_err, {arm.rdma_writeres.rdma_chunk_index, arm.rdma_writeres.rdma_length_needed}};
    case RDMA2_ERR_REPLY_RESOURCE: return {error.rdma_err, {arm.rdma_length_needed}};
    default: return {error.rdma_err, {}};
  }
}

void put(const wg07_hdr_error& body, Message& message) {
  message.error = error_of(body);
}
void put(const wg07_hdr_connprop& body, Message& message) {
  message.properties = properties_of(body.rdma_props.wg07_propset_val, body.rdma_props.wg07_propset_len);
}
void put(const wg07_hdr_call_external& body, Message& message) {
  message.inv_handle = body.rdma_inv_handle;
  message.call = read_list_of(body.rdma_call);
  message.reads = read_list_of(body.rdma_reads);
  message.writes = write_list_of(body.rdma_provisional_writes);
  message.reply = reply_chunk_of(body.rdma_provisional_reply);
}
void put(const wg07_hdr_call_inline& body, Message& message) {
  message.inv_handle = body.rdma_inv_handle;
  message.reads = read_list_of(body.rdma_reads);
  message.writes = write_list_of(body.rdma_provisional_writes);
  message.reply = reply_chunk_of(body.rdma_provisional_reply);
}
void put(const wg07_hdr_call_middle& body, Message& message) {
  message.remaining = body.rdma_remaining;
}
void put(const wg07_hdr_reply_external& body, Message& message) {
  message.writes = write_list_of(body.rdma_writes);
  message.reply = reply_chunk_of(body.rdma_reply);
}
void put(const wg07_hdr_reply_middle& body, Message& message) {
  message.remaining = body.rdma_remaining;
}
void put(const wg07_hdr_reply_inline& body, Message& message) {
  message.writes = write_list_of(body.rdma_writes);
}

// The length of what follows the prefix, rdma_rpc_first_word included; nothing where it is no XDR of its type.
template <typename T>
std::optional<std::size_t> parse_as(bool_t (*routine)(XDR*, T*), Octets octets, Message& message) {
  XdrValue<T> body(routine);
  const auto len = body.read(octets);
  if (len) put(*body, message);
  return len;
}

std::optional<std::size_t> parse_body(Octets octets, Message& message) {
  switch (message.type) {
    case RDMA2_ERROR: return parse_as(xdr_wg07_hdr_error, octets, message);
    case RDMA2_CONNPROP_MIDDLE:
    case RDMA2_CONNPROP_FINAL: return parse_as(xdr_wg07_hdr_connprop, octets, message);
    case RDMA2_CALL_EXTERNAL: return parse_as(xdr_wg07_hdr_call_external, octets, message);
    case RDMA2_CALL_MIDDLE: return parse_as(xdr_wg07_hdr_call_middle, octets, message);
    case RDMA2_CALL_INLINE: return parse_as(xdr_wg07_hdr_call_inline, octets, message);
    case RDMA2_REPLY_EXTERNAL: return parse_as(xdr_wg07_hdr_reply_external, octets, message);
    case RDMA2_REPLY_MIDDLE: return parse_as(xdr_wg07_hdr_reply_middle, octets, message);
    case RDMA2_REPLY_INLINE: return parse_as(xdr_wg07_hdr_reply_inline, octets, message);
    default: return 0;  // RDMA2_GRANT
  }
}

template <typename T>
bool is_whole(bool_t (*routine)(XDR*, T*), const Bytes& octets) {
  XdrValue<T> value(routine);
  return value.read(octets) == octets.size();
}

}  // namespace

std::variant<Message, Fault> parse_wg07(Octets octets) {
  XdrValue<wg07_hdr_prefix> prefix(xdr_wg07_hdr_prefix);
  const auto prefix_len = prefix.read(octets);
  if (!prefix_len) return Fault{"W2-7-1", "the message ends inside its prefix"};
  Message message;
  message.profile = Profile::kWg07;
  message.xid = prefix->rdma_start.rdma_xid;
  message.version = prefix->rdma_start.rdma_vers;
  message.credit = prefix->rdma_start.rdma_credit;
  message.type = prefix->rdma_start.rdma_htype;
  const HeaderType& type = *header_type(Profile::kWg07, message.type);
  message.kind = type.kind;
  message.direction = type.direction;
  const auto body_len = parse_body(octets.subspan(*prefix_len), message);
  if (!body_len) {
    const bool has_properties = message.kind == Kind::kProperties;
    return Fault{has_properties ? "W2-5.1-3" : "W2-7.2.1-1", "the header is no XDR of its type"};
  }
  const bool has_payload = message.kind == Kind::kInline || message.kind == Kind::kPart;
  message.header_len = *prefix_len + *body_len - (has_payload ? kFirstWord : 0);
  return message;
}

bool is_value_of_wg07(const Property& property) {
  switch (property.id) {
    case RDMA2_PROPID_SBSIZ: return is_whole(xdr_wg07_prop_sbsiz, property.value);
    case RDMA2_PROPID_RBSIZ: return is_whole(xdr_wg07_prop_rbsiz, property.value);
    case RDMA2_PROPID_RSSIZ: return is_whole(xdr_wg07_prop_rssiz, property.value);
    case RDMA2_PROPID_RCSIZ: return is_whole(xdr_wg07_prop_rcsiz, property.value);
    case RDMA2_PROPID_HOSTAUTH: return is_whole(xdr_wg07_prop_hostauth, property.value);
    case RDMA2_PROPID_BRS: {
      XdrValue<wg07_prop_brs> value(xdr_wg07_prop_brs);
      return value.read(property.value) == property.value.size() && *value <= RDMA2_RVRSDIR_GENL;
    }
    default: return true;
  }
}

}  // namespace weft::wire_v2
