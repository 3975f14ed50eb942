#include "apps/dissect/transport_fields.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "rpcrdma/v1/header.h"
#include "rpcrdma/v2/properties.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_cel05/properties.h"
#include "rpcrdma/v2_wg07/header.h"
#include "rpcrdma/v2_wg07/properties.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

namespace {

namespace v1 = rpcrdma::v1;
namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;
using rpcrdma::Protocol;
using rpcrdma::xdr::XdrReader;

std::string_view property_name(const rpcrdma::v2::PropertyTable& table, std::uint32_t which) {
  using rpcrdma::v2::Property;
  const auto id = std::ranges::find(table.ids, which, &rpcrdma::v2::PropertyId::which);
  if (id == table.ids.end()) return "unknown";
  switch (id->property) {
    case Property::kSendSize: return "send size";
    case Property::kReceiveSize: return "receive size";
    case Property::kSegmentSize: return "segment size";
    case Property::kSegmentCount: return "segment count";
    case Property::kReverse: return "reverse direction";
    case Property::kHostAuth: return "host authentication";
  }
  return "";
}

// The value of a property: most are words.
std::string value_str(ConstBytes value) {
  XdrReader in(value);
  std::uint32_t word = 0;
  if (value.empty()) return "the default";
  if (in.u32(word) && in.at_end()) return std::to_string(word);
  return fmt::format("{} bytes", value.size());
}

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
  // rpcrdma2_propset. name: of the set, which has a count first.
  bool propset(std::string_view name, const rpcrdma::v2::PropertyTable& table) {
    std::uint32_t count = 0;
    if (!u32(name, count)) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::size_t at = in.position();
      std::uint32_t which = 0;
      ConstBytes value;
      if (!in.u32(which) || !in.opaque(value)) return false;
      layer.field("property", at, in.position() - at, "{} ({}): {}", which, property_name(table, which),
                  value_str(value));
    }
    return true;
  }
  // rpcrdma2_propsubset: words of bits, which select positions in a set.
  bool propsubset(std::string_view name) {
    const std::size_t at = in.position();
    std::uint32_t count = 0;
    if (!in.u32(count)) return false;
    std::string bits;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t word = 0;
      if (!in.u32(word)) return false;
      bits += fmt::format(" {:#010x}", word);
    }
    layer.field(name, at, in.position() - at, "{} words{}", count, bits);
    return true;
  }
  bool opaque(std::string_view name) {
    const std::size_t at = in.position();
    ConstBytes value;
    if (!in.opaque(value)) return false;
    layer.field(name, at + 4, value.size(), "{} bytes", value.size());
    return true;
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
  if (header.is(wg07::Htype::kCallExternal)) words.read_list("Call chunk");
  const bool is_wg07_reply = header.is(wg07::Htype::kReplyInline) || header.is(wg07::Htype::kReplyExternal);
  if (!is_wg07_reply) words.read_list("Read list");
  words.write_list();
  if (!header.is(wg07::Htype::kReplyInline)) words.reply_chunk();
}

// The arms of RDMA2_ERROR (cel05 section 7.2, wg07 section 6.3.1): the drafts number their errors differently.
template <typename Err>
void tell_arm(Err err, Words& words) {
  switch (err) {
    case Err::kVers: (void)(words.u32("rdma_vers_low") && words.u32("rdma_vers_high")); return;
    case Err::kReadChunks:
    case Err::kWriteChunks: words.u32("rdma_max_chunks"); return;
    case Err::kSegments: words.u32("rdma_max_segments"); return;
    case Err::kWriteResource: (void)(words.u32("rdma_chunk_index") && words.u32("rdma_length_needed")); return;
    case Err::kReplyResource: words.u32("rdma_length_needed"); return;
    default: return;
  }
}

void tell_error(Protocol protocol, Words& words) {
  std::uint32_t err = 0;
  if (!words.u32("rdma_err", err)) return;
  switch (protocol) {
    case Protocol::k1:
      if (!words.in.rest().empty()) (void)(words.u32("rdma_vers_low") && words.u32("rdma_vers_high"));
      return;
    case Protocol::k2Cel05: return tell_arm(cel05::Err{err}, words);
    case Protocol::k2Wg07: return tell_arm(wg07::Err{err}, words);
  }
}

// Whether the type is one without chunk lists, whose words are told.
bool tell_properties(const TransportHeader& header, Words& words) {
  using enum cel05::Proc;
  const auto& table = cel05::kProperties;
  if (header.is(kOptional)) {
    (void)(words.u32("rdma_optdir") && words.u32("rdma_opttype") && words.opaque("rdma_optinfo"));
  } else if (header.is(kConnprop)) {
    (void)(words.propset("rdma_start", table) && words.propsubset("rdma_nochg"));
  } else if (header.is(kReqprop)) {
    words.propset("rdma_want", table);
  } else if (header.is(kResprop)) {
    (void)(words.propsubset("rdma_done") && words.propsubset("rdma_rejected") && words.propset("rdma_other", table));
  } else if (header.is(kUpdprop)) {
    words.propset("rdma_now", table);
  } else if (header.is_connprop_wg07()) {
    words.propset("rdma_props", wg07::kProperties);
  } else {
    return false;
  }
  return true;
}

}  // namespace

void tell_lists(const rpcrdma::ChunkListsView& lists, LayerWriter& layer) {
  if (!lists.call_chunk.empty()) {
    layer.line(FMT_COMPILE(", Call chunk {} bytes in {}"), rpcrdma::total_length(lists.call_chunk),
               lists.call_chunk.size());
  }
  std::uint64_t read = 0;
  for (const rpcrdma::ReadSegment& segment : lists.read_list) read += segment.target.length;
  if (!lists.read_list.empty()) {
    layer.line(FMT_COMPILE(", Read list {} bytes in {} at {}"), read, lists.read_list.size(),
               lists.read_list.front().position);
  }
  for (const rpcrdma::SegmentArray& chunk : lists.write_list) {
    layer.line(FMT_COMPILE(", Write chunk {} bytes in {}"), rpcrdma::total_length(chunk), chunk.size());
  }
  if (lists.reply_chunk) {
    layer.line(FMT_COMPILE(", Reply chunk {} bytes in {}"), rpcrdma::total_length(*lists.reply_chunk),
               lists.reply_chunk->size());
  }
}

void tell_header_fields(Protocol protocol, const TransportHeader& header, ConstBytes message, LayerWriter& layer) {
  constexpr std::size_t kTypeAt = 12;
  Words words{XdrReader(message.first(header.len)), layer};
  std::uint32_t type = 0;
  if (!words.hex32("rdma_xid") || !words.u32("rdma_vers") || !words.u32("rdma_credit") || !words.in.u32(type)) return;
  layer.field(protocol == Protocol::k2Wg07 ? "rdma_htype" : "rdma_proc", kTypeAt, 4, "{} ({})", type,
              type_str(header.type));
  layer.field("header", 0, header.len, "{} bytes", header.len);
  if (header.error) return tell_error(protocol, words);
  if (tell_properties(header, words)) return;
  if (header.is(v1::Proc::kMsgp) && (!words.u32("rdma_align") || !words.u32("rdma_thresh"))) return;
  const bool is_cel05_message = header.is(cel05::Proc::kMsg) || header.is(cel05::Proc::kNomsg);
  if (is_cel05_message && !words.u32("rdma_direction")) return;
  if (header.is_middle) {
    words.u32("rdma_remaining");
    return;
  }
  const bool is_wg07_call = header.is(wg07::Htype::kCallInline) || header.is(wg07::Htype::kCallExternal);
  if ((is_cel05_message || is_wg07_call) && !words.hex32("rdma_inv_handle")) return;
  if (header.has_payload || header.external) tell_lists(header, words);
}

}  // namespace weft::apps::dissect
