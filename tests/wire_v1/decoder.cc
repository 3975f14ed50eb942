#include "tests/wire_v1/decoder.h"

#include <algorithm>
#include <map>

namespace weft::wire_v1 {
namespace {

constexpr std::uint32_t kMsg = 0, kNomsg = 1, kError = 4;  // rdma_proc
constexpr std::uint32_t kErrVers = 1, kErrChunk = 2;       // rdma_err
constexpr std::size_t kMinCall = 40, kMinReply = 20;       // octets of an RPC message (RFC 5531 section 9)
constexpr std::uint32_t kMaxAuth = 400;                    // octets of a credential or verifier

std::uint64_t round_up(std::uint64_t len) {
  return (len + 3) / 4 * 4;
}

// Reads words in order; after a fault, which names the first, it reads zeros.
class Words {
 public:
  explicit Words(Octets octets) : octets_(octets) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return octets_.size() - at_; }
  const std::optional<Fault>& fault() const { return fault_; }
  void fail(const std::string& text) {
    if (!fault_) fault_ = Fault{text + " (octet " + std::to_string(at_) + ")"};
  }
  void require(bool holds, const char* text) {
    if (!holds) fail(text);
  }
  std::uint32_t word(const char* what) {
    if (fault_) return 0;
    if (left() < 4) {
      fail(std::string("the message ends before ") + what);
      return 0;
    }
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | octets_[at_++];
    return value;
  }
  // An XDR boolean, as optional-data begins (RFC 4506 section 4.19).
  bool present(const char* what) {
    const std::uint32_t value = word(what);
    if (value > 1) fail(std::string(what) + " is neither 0 nor 1");
    return !fault_ && value == 1;
  }
  void skip(std::size_t len, const char* what) {
    if (fault_) return;
    if (left() < len) return fail(std::string("the message ends inside ") + what);
    at_ += len;
  }

 private:
  Octets octets_;
  std::size_t at_ = 0;
  std::optional<Fault> fault_;
};

Segment segment(Words& in) {
  Segment segment;
  segment.at = in.at();
  segment.handle = in.word("a segment's handle");
  segment.length = in.word("a segment's length");
  segment.offset = std::uint64_t{in.word("a segment's offset")} << 32;
  segment.offset |= in.word("a segment's offset");
  in.require(segment.offset <= UINT64_MAX - segment.length, "a segment wraps around the end of memory");
  return segment;
}

Chunk read_list(Words& in) {
  Chunk reads;
  while (in.present("the Read list's discriminator")) {
    const std::uint32_t position = in.word("a Position");
    in.require(position % 4 == 0, "a Position is not a multiple of four");
    reads.push_back(segment(in));
    reads.back().position = position;
  }
  return reads;
}

Chunk write_chunk(Words& in) {
  constexpr std::size_t kSegment = 16;
  const std::uint32_t num = in.word("a chunk's count of segments");
  in.require(num <= in.left() / kSegment, "a chunk counts more segments than there are");
  Chunk chunk;
  for (std::uint32_t i = 0; i < num && !in.fault(); ++i) chunk.push_back(segment(in));
  return chunk;
}

void chunk_lists(Words& in, Message& message) {
  message.reads = read_list(in);
  while (in.present("the Write list's discriminator")) message.writes.push_back(write_chunk(in));
  if (in.present("the Reply chunk's discriminator")) message.reply = write_chunk(in);
}

void auth(Words& in, const char* what) {
  in.word(what);
  const std::uint32_t len = in.word(what);
  in.require(len <= kMaxAuth, "a credential or verifier is longer than 400 octets");
  in.skip(round_up(len), what);
}

void rpc_call(Words& in) {
  in.require(in.word("the RPC version") == 2, "the RPC version is not 2");
  in.skip(12, "program, version and procedure");
  auth(in, "the credential");
  auth(in, "the Call's verifier");
}

void rpc_reply(Words& in) {
  constexpr std::uint32_t kAccepted = 0, kProgMismatch = 2, kSystemErr = 5;
  const std::uint32_t stat = in.word("reply_stat");
  in.require(stat <= 1, "reply_stat is neither accepted nor denied");
  if (stat != kAccepted) {
    constexpr std::uint32_t kAuthError = 1;
    const std::uint32_t reject = in.word("reject_stat");
    in.require(reject <= kAuthError, "reject_stat is neither of the two");
    in.skip(reject == kAuthError ? 4 : 8, "a denied Reply");
    return in.require(in.left() == 0, "something follows a denied Reply");
  }
  auth(in, "the Reply's verifier");
  const std::uint32_t accept = in.word("accept_stat");
  in.require(accept <= kSystemErr, "accept_stat is none of the six");
  if (accept == kProgMismatch) in.skip(8, "the versions of PROG_MISMATCH");
  if (accept != 0) in.require(in.left() == 0, "something follows an error's accept_stat");
}

// Read chunks by their Positions, with their lengths.
using Reads = std::map<std::uint32_t, std::uint64_t>;

Reads chunks_of(const Chunk& reads) {
  Reads chunks;
  for (const Segment& segment : reads) chunks[segment.position] += segment.length;
  return chunks;
}

// Positions count in the stream before items were taken out of it (RFC 8166 section 3.4.4). An item stands behind the
// Call's header, and not beyond the end of the octets and items before it.
void positions(Words& in, const Reads& chunks, std::uint64_t header_len, std::uint64_t stream_len) {
  for (const auto& [position, len] : chunks) {
    in.require(position >= header_len, "a Position is inside the RPC header");
    in.require(position <= stream_len, "a Position is beyond the end of the Payload stream");
    stream_len += round_up(len);
  }
}

void short_message(Words& in, Message& message) {
  constexpr std::uint32_t kCall = 0;
  const std::size_t len = in.left();
  in.require(len % 4 == 0, "the Payload stream is no multiple of four octets");
  in.require(in.word("the Payload stream") == message.xid, "the RPC message has another XID");
  const std::uint32_t type = in.word("the RPC message's type");
  in.require(type <= 1, "the RPC message is neither Call nor Reply");
  if (type == kCall) {
    message.kind = Kind::kCall;
    rpc_call(in);
    positions(in, chunks_of(message.reads), in.at() - message.header_len, len);
  } else {
    message.kind = Kind::kReply;
    rpc_reply(in);
    in.require(message.reads.empty(), "a Reply has a Read list");
    in.require(!message.reply || length_of(*message.reply) == 0, "a short Reply uses its Reply chunk");
  }
}

void long_message(Words& in, Message& message) {
  in.require(in.left() == 0, "something follows the header of RDMA_NOMSG");
  Reads chunks = chunks_of(message.reads);
  const auto whole = chunks.find(0);
  std::uint64_t len = 0;
  if (whole != chunks.end()) {
    message.kind = Kind::kLongCall;
    len = whole->second;
    in.require(len >= kMinCall, "the Position Zero Read chunk is too short for a Call");
    chunks.erase(whole);
    positions(in, chunks, kMinCall, len);
  } else {
    message.kind = Kind::kLongReply;
    in.require(message.reads.empty(), "RDMA_NOMSG has a Read list without a Position Zero Read chunk");
    in.require(message.reply.has_value(), "RDMA_NOMSG has no chunk for its Payload stream");
    len = message.reply ? length_of(*message.reply) : 0;
    in.require(len >= kMinReply, "the Reply chunk is too short for a Reply");
  }
  in.require(len % 4 == 0, "the Payload stream is no multiple of four octets");
}

void error(Words& in, Message& message) {
  const std::uint32_t code = in.word("rdma_err");
  in.require(code == kErrVers || code == kErrChunk, "rdma_err is neither ERR_VERS nor ERR_CHUNK");
  message.kind = code == kErrVers ? Kind::kErrVers : Kind::kErrChunk;
  if (code == kErrVers) {
    message.low = in.word("rdma_vers_low");
    message.high = in.word("rdma_vers_high");
    in.require(message.low <= message.high, "ERR_VERS has no version between its lowest and its highest");
  }
  message.header_len = in.at();
  in.require(in.left() == 0, "something follows RDMA_ERROR");
}

}  // namespace

std::uint64_t length_of(const Chunk& chunk) {
  std::uint64_t length = 0;
  for (const Segment& segment : chunk) length += segment.length;
  return length;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kCall: return "Call";
    case Kind::kReply: return "Reply";
    case Kind::kLongCall: return "long Call";
    case Kind::kLongReply: return "long Reply";
    case Kind::kErrVers: return "ERR_VERS";
    case Kind::kErrChunk: return "ERR_CHUNK";
  }
  return "";
}

std::variant<Message, Fault> decode(Octets octets) {
  Words in(octets);
  Message message;
  message.xid = in.word("rdma_xid");
  message.version = in.word("rdma_vers");
  message.credits = in.word("rdma_credit");
  in.require(message.credits > 0, "rdma_credit is 0");
  const std::uint32_t proc = in.word("rdma_proc");
  in.require(proc == kMsg || proc == kNomsg || proc == kError, "rdma_proc is none that may be sent");
  if (proc == kError) {
    error(in, message);
  } else {
    chunk_lists(in, message);
    message.header_len = in.at();
    if (proc == kMsg) short_message(in, message);
    if (proc == kNomsg) long_message(in, message);
  }
  // ERR_VERS tells the version of the request that it refuses (RFC 8166 section 4.5).
  in.require(message.version == 1 || message.kind == Kind::kErrVers, "rdma_vers is not 1");
  if (in.fault()) return *in.fault();
  return message;
}

}  // namespace weft::wire_v1
