#include "rpcrdma/v1/header.h"

#include <array>
#include <cstring>

#include "requirements/violates.h"
#include "rpcrdma/chunk_list_codec.h"

namespace weft::rpcrdma::v1 {

namespace {

HeaderError header_error(ListError error) {
  switch (error) {
    case ListError::kNone: return HeaderError::kNone;
    case ListError::kTruncated: return HeaderError::kTruncated;
    case ListError::kDiscriminator: return HeaderError::kDiscriminator;
    case ListError::kCount: return HeaderError::kCount;
  }
  return HeaderError::kTruncated;
}

// Passes over the three lists if they are empty, as most are: three discriminators of 0.
bool skip_empty_lists(xdr::XdrReader& in) {
  static constexpr std::array<std::uint8_t, 12> kEmpty = {};
  const ConstBytes ahead = in.rest();
  return ahead.size() >= kEmpty.size() && std::memcmp(ahead.data(), kEmpty.data(), kEmpty.size()) == 0 &&
         in.skip(kEmpty.size());
}

HeaderError parse_lists(xdr::XdrReader& in, ChunkListsView& lists) {
  if (skip_empty_lists(in)) {
    lists.clear();
    return HeaderError::kNone;
  }
  lists.call_chunk.clear();
  ListError error = parse_read_list(in, lists.read_list);
  if (error == ListError::kNone) error = parse_write_list(in, lists.write_list);
  if (error == ListError::kNone) error = parse_reply_chunk(in, lists.reply_chunk);
  if (error != ListError::kNone) lists.clear();
  return header_error(error);
}

HeaderError parse_error(xdr::XdrReader& in, HeaderWords& header) {
  std::uint32_t err = 0;
  if (!in.u32(err)) return HeaderError::kTruncated;
  if (err == static_cast<std::uint32_t>(Err::kChunk)) {
    header.err = Err::kChunk;
    return HeaderError::kNone;
  }
  if (violates("R1-5.5-08", err != static_cast<std::uint32_t>(Err::kVers))) return HeaderError::kErr;
  header.err = Err::kVers;
  return in.u32(header.vers_low) && in.u32(header.vers_high) ? HeaderError::kNone : HeaderError::kTruncated;
}

void emit_lists(xdr::XdrWriter& out, const ChunkListsView& lists) {
  emit_read_list(out, lists.call_chunk, lists.read_list);
  emit_write_list(out, lists.write_list);
  emit_reply_chunk(out, lists.reply_chunk);
}

}  // namespace

const char* header_error_str(HeaderError error) {
  switch (error) {
    case HeaderError::kNone: return "none";
    case HeaderError::kTruncated: return "truncated";
    case HeaderError::kProc: return "unknown rdma_proc";
    case HeaderError::kErr: return "unknown rdma_err";
    case HeaderError::kDiscriminator: return "optional-data discriminator is neither 0 nor 1";
    case HeaderError::kCount: return "segment count exceeds the message";
  }
  return "unknown";
}

namespace {

// The words behind the fourth one.
HeaderError parse_rest(xdr::XdrReader& in, HeaderWords& header, ChunkListsView& lists) {
  switch (header.proc) {
    case Proc::kMsg:
    case Proc::kNomsg: return parse_lists(in, lists);
    case Proc::kMsgp:
      if (!in.u32(header.align) || !in.u32(header.thresh)) break;
      return parse_lists(in, lists);
    case Proc::kDone: lists.clear(); return HeaderError::kNone;
    case Proc::kError: lists.clear(); return parse_error(in, header);
  }
  lists.clear();
  return HeaderError::kTruncated;
}

}  // namespace

// The lists keep their memory.
HeaderError parse_header(xdr::XdrReader& in, HeaderWords& header, ChunkListsView& lists) {
  header = {};
  std::uint32_t proc = 0;
  HeaderError error = HeaderError::kNone;
  if (!in.u32(header.xid) || !in.u32(header.vers) || !in.u32(header.credit) || !in.u32(proc)) {
    error = HeaderError::kTruncated;
  } else if (proc > static_cast<std::uint32_t>(Proc::kError)) {
    error = HeaderError::kProc;  // R1-5.5.2-02
  }
  if (error != HeaderError::kNone) {
    lists.clear();
    return error;
  }
  header.proc = static_cast<Proc>(proc);
  return parse_rest(in, header, lists);
}

namespace {

void emit_fixed(xdr::XdrWriter& out, std::uint32_t xid, std::uint32_t vers, std::uint32_t credit, Proc proc) {
  out.u32(xid);
  out.u32(vers);
  out.u32(credit);
  out.u32(static_cast<std::uint32_t>(proc));
}

void emit_error(xdr::XdrWriter& out, Err err, std::uint32_t low, std::uint32_t high) {
  out.u32(static_cast<std::uint32_t>(err));
  if (err != Err::kVers) return;
  out.u32(low);
  out.u32(high);
}

}  // namespace

void emit_header(xdr::XdrWriter& out, const Header& header) {
  emit_fixed(out, header.xid, header.vers, header.credit, header.proc);
  switch (header.proc) {
    case Proc::kMsg:
    case Proc::kNomsg: emit_lists(out, header.lists); break;
    case Proc::kMsgp:
      out.u32(header.align);
      out.u32(header.thresh);
      emit_lists(out, header.lists);
      break;
    case Proc::kDone: break;
    case Proc::kError: emit_error(out, header.err, header.vers_low, header.vers_high); break;
  }
}

std::string_view error_name(TransportError::Code code) {
  return code == TransportError::Code::kVersion ? "ERR_VERS" : "ERR_CHUNK";
}

void emit_message(xdr::XdrWriter& out, const Message& message) {
  if (message.type == Message::Type::kError) {
    const TransportError& error = message.error;
    emit_fixed(out, message.xid, message.version, message.credit, Proc::kError);
    return emit_error(out, error.code == TransportError::Code::kVersion ? Err::kVers : Err::kChunk, error.low,
                      error.high);
  }
  emit_fixed(out, message.xid, message.version, message.credit, message.external ? Proc::kNomsg : Proc::kMsg);
  emit_lists(out, message.lists);
}

}  // namespace weft::rpcrdma::v1
