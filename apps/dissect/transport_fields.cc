#include "apps/dissect/transport_fields.h"

#include <string_view>

#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

namespace {

using rpcrdma::Protocol;
using rpcrdma::xdr::XdrReader;

// Words: the words of a header one by one.
struct Words {
  XdrReader in;
  LayerWriter& layer;

  bool u32(std::string_view name, std::uint32_t& value) {
    const std::size_t at = in.position();
    if (!in.u32(value)) return false;
    layer.field(name, at, 4, "{}", value);
    return true;
  }
  bool u32(std::string_view name) {
    std::uint32_t value = 0;
    return u32(name, value);
  }
  bool hex32(std::string_view name) {
    const std::size_t at = in.position();
    std::uint32_t value = 0;
    if (!in.u32(value)) return false;
    layer.field(name, at, 4, "{:#010x}", value);
    return true;
  }
  bool segment() {
    if (!hex32("handle") || !u32("length")) return false;
    const std::size_t at = in.position();
    std::uint64_t offset = 0;
    if (!in.u64(offset)) return false;
    layer.field("offset", at, 8, "{:#x}", offset);
    return true;
  }
  // optional-data: 1 and an item, or 0.
  bool present(std::string_view name) {
    std::uint32_t value = 0;
    return u32(name, value) && value == 1;
  }
  void read_list(std::string_view name) {
    while (present(name)) {
      if (!u32("position") || !segment()) return;
    }
  }
  void chunk() {
    std::uint32_t count = 0;
    if (!u32("segments", count)) return;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!segment()) return;
    }
  }
  void write_list() {
    while (present("Write list")) chunk();
  }
  void reply_chunk() {
    if (present("Reply chunk")) chunk();
  }
};

void tell_lists(const TransportHeader& header, Words& words) {
  const bool is_call_external = header.type == "RDMA2_CALL_EXTERNAL";
  const bool is_wg07_reply = header.type == "RDMA2_REPLY_INLINE" || header.type == "RDMA2_REPLY_EXTERNAL";
  if (is_call_external) words.read_list("Call chunk");
  if (!is_wg07_reply) words.read_list("Read list");
  words.write_list();
  if (header.type != "RDMA2_REPLY_INLINE") words.reply_chunk();
}

}  // namespace

void tell_header_fields(Protocol protocol, const TransportHeader& header, ConstBytes message, LayerWriter& layer) {
  constexpr std::size_t kTypeAt = 12;
  Words words{XdrReader(message.first(header.len)), layer};
  std::uint32_t type = 0;
  if (!words.hex32("rdma_xid") || !words.u32("rdma_vers") || !words.u32("rdma_credit") || !words.in.u32(type)) return;
  layer.field(protocol == Protocol::k2Wg07 ? "rdma_htype" : "rdma_proc", kTypeAt, 4, "{} ({})", type, header.type);
  layer.field("header", 0, header.len, "{} bytes", header.len);
  if (header.type.ends_with("_ERROR")) {
    if (words.u32("rdma_err") && !words.in.rest().empty() && protocol == Protocol::k1) {
      (void)(words.u32("rdma_vers_low") && words.u32("rdma_vers_high"));
    }
    return;
  }
  if (header.type == "RDMA_MSGP" && (!words.u32("rdma_align") || !words.u32("rdma_thresh"))) return;
  if (header.type == "RDMA_DONE") return;
  const bool is_cel05_message = header.type == "RDMA2_MSG" || header.type == "RDMA2_NOMSG";
  if (is_cel05_message && !words.u32("rdma_direction")) return;
  if (header.type.ends_with("_MIDDLE") && !header.type.starts_with("RDMA2_CONNPROP")) {
    words.u32("rdma_remaining");
    return;
  }
  const bool has_handle =
      is_cel05_message || header.type == "RDMA2_CALL_INLINE" || header.type == "RDMA2_CALL_EXTERNAL";
  if (has_handle && !words.hex32("rdma_inv_handle")) return;
  const bool has_lists = protocol == Protocol::k1 || is_cel05_message || header.type.ends_with("_INLINE") ||
                         header.type.ends_with("_EXTERNAL");
  if (has_lists) tell_lists(header, words);
}

}  // namespace weft::apps::dissect
