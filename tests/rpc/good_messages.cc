#include "tests/rpc/good_messages.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>

#include "nfsulb/bindings.h"
#include "nfsulb/testing/compound.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

using nfsulb::testing::Xdr;
using namespace nfsulb;           // NOLINT: numbers of programs
using namespace nfsulb::testing;  // NOLINT: COMPOUNDs

constexpr std::size_t kHandleLen = 28;

// A peer's memory may lie anywhere. The heap would put it elsewhere in every build, and the spoiled octets would
// differ.
constexpr std::uint64_t kPeerMemory = 0x7f00'0000'0000;
constexpr unsigned kRegionBits = 24;

// Memory of its own for each segment. `contents`: octets of Read chunks, by Position.
void attach_memory(GoodMessage& message, FakeMemory& memory, std::map<std::uint32_t, Octets> contents) {
  xdr::XdrReader in(message.octets);
  v1::Header header;
  if (v1::parse_header(in, header) != v1::HeaderError::kNone) return;
  message.header_len = in.position();
  const Octets payload(in.rest().begin(), in.rest().end());
  const auto attach = [&](Segment& segment, bool readable, const Octets& content) {
    auto& all = readable ? message.readable : message.writable;
    all.push_back(std::make_unique<Octets>(content));
    all.back()->resize(segment.length);
    const auto access =
        readable ? verbs::Access::kRemoteRead : verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite;
    segment.offset = kPeerMemory + (memory.size() << kRegionBits);
    message.mrs.push_back(std::make_unique<FakeMr>(
        memory, FakeMemory::Region{all.back()->data(), segment.length, access, segment.offset}));
    segment.handle = message.mrs.back()->rkey();
  };
  std::map<std::uint32_t, std::size_t> taken;
  for (ReadSegment& segment : header.lists.read_list) {
    Octets& content = contents[segment.position];
    std::size_t& at = taken[segment.position];
    const std::size_t len = std::min<std::size_t>(segment.target.length, content.size() - at);
    const auto from = content.begin() + static_cast<std::ptrdiff_t>(at);
    attach(segment.target, true, Octets(from, from + static_cast<std::ptrdiff_t>(len)));
    at += len;
  }
  for (SegmentArray& chunk : header.lists.write_list) {
    for (Segment& segment : chunk) attach(segment, false, {});
  }
  if (header.lists.reply_chunk) {
    for (Segment& segment : *header.lists.reply_chunk) attach(segment, false, {});
  }
  message.octets = testing::message(header, payload);
}

Octets rpc_call(std::uint32_t xid, std::uint32_t program, std::uint32_t version, std::uint32_t procedure,
                const OpaqueAuth& cred, ConstBytes args) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_call(out, {xid, program, version, procedure, cred, {}});
  out.raw(args);
  return octets;
}

Octets with_item(const Octets& args, std::size_t position, const Octets& item) {
  Octets whole;
  xdr::XdrWriter out(whole);
  out.raw(ConstBytes(args).first(position));
  out.opaque_fixed(item);
  out.raw(ConstBytes(args).subspan(position));
  return whole;
}

// The contents of the Position Zero chunks of V06 and V16, by their descriptions.
std::map<std::uint32_t, Octets> contents_of(const std::string& id) {
  if (id == "V06") {
    const Octets args = with_item(Xdr().opaque(32).u64(0).words({4300, 2, 4300}).octets(), 56, pattern(4300));
    return {{0, rpc_call(0x11110006, kNfsProgram, kNfsV3, 7, {}, args)}};
  }
  if (id == "V16") {
    const Xdr args = Xdr().opaque(900).u32(0).u32(3).add(op(kOpPutfh, Xdr().opaque(8))).add(write(8191));
    return {{0, rpc_call(0x11110010, kNfsProgram, kNfsV4, kCompound, {}, Xdr(args).add(getattr({0x10, 0x2})).octets())},
            {1004, pattern(8191)}};
  }
  return {};
}

enum class Form : std::uint8_t { kShort, kChunked, kLong, kLongAndChunk };

// A Call of NFS; its item, if it has one, is missing in `args` at `position`.
struct NfsCall {
  const char* name;
  std::uint32_t program, version, procedure;
  Octets args;
  std::optional<std::size_t> position;
  std::vector<std::uint32_t> rooms = {};  // of its Write chunks; 0 for one without segments
  std::uint32_t reply_room = 0;
};

std::vector<NfsCall> nfs_calls() {
  const Xdr handle2 = Xdr().fixed(32);
  const Xdr handle3 = Xdr().opaque(kHandleLen);
  const Xdr write2 = Xdr(handle2).words({0, 0, 0, 600});
  const Xdr write3 = Xdr(handle3).u64(0).words({600, 2, 600});
  const Xdr link2 = Xdr(handle2).opaque(5).u32(600);
  const Xdr link3 = Xdr(handle3).opaque(5).words({0, 0, 0, 0, 0, 0, 600});
  const Xdr begin4 = Xdr().opaque(5).u32(0).u32(3).add(putfh()).add(write(600));
  const Xdr create4 =
      Xdr().opaque(5).u32(1).u32(3).add(sequence()).add(putfh()).add(op(kOpCreate, Xdr().u32(5).u32(600)));
  return {
      {"v3 NULL", kNfsProgram, kNfsV3, 0, {}, {}},
      {"v3 LOOKUP", kNfsProgram, kNfsV3, 3, Xdr(handle3).opaque(9).octets(), {}},
      {"v2 READ", kNfsProgram, kNfsV2, 6, Xdr(handle2).words({0, 4000, 0}).octets(), {}, {4000}},
      {"v2 WRITE", kNfsProgram, kNfsV2, 8, write2.octets(), write2.size()},
      {"v2 SYMLINK", kNfsProgram, kNfsV2, 13, Xdr(link2).words({0, 0, 0, 0, 0, 0, 0, 0}).octets(), link2.size()},
      {"v3 READ", kNfsProgram, kNfsV3, 6, Xdr(handle3).u64(0).u32(5000).octets(), {}, {5000}},
      {"v3 READ without chunk", kNfsProgram, kNfsV3, 6, Xdr(handle3).u64(0).u32(5000).octets(), {}, {}, 6000},
      {"v3 READLINK", kNfsProgram, kNfsV3, 5, handle3.octets(), {}, {1024}, 600},
      {"v3 WRITE", kNfsProgram, kNfsV3, 7, write3.octets(), write3.size()},
      {"v3 SYMLINK", kNfsProgram, kNfsV3, 10, link3.octets(), link3.size()},
      {"v3 READDIR", kNfsProgram, kNfsV3, 16, Xdr(handle3).u64(0).u64(0).u32(8192).octets(), {}, {}, 8300},
      {"v4.0 READ READ",
       kNfsProgram,
       kNfsV4,
       kCompound,
       compound_args(0, {putfh(), read(4096), read(100)}).octets(),
       {},
       {4096, 100}},
      {"v4.0 READ READ, one inline",
       kNfsProgram,
       kNfsV4,
       kCompound,
       compound_args(0, {putfh(), read(4096), read(100)}).octets(),
       {},
       {0, 100},
       5000},
      {"v4.0 WRITE GETATTR", kNfsProgram, kNfsV4, kCompound, Xdr(begin4).add(getattr({0x10, 2})).octets(),
       begin4.size()},
      {"v4.1 CREATE", kNfsProgram, kNfsV4, kCompound, Xdr(create4).opaque(5).words({0, 0}).octets(), create4.size()},
      {"v4.2 READ_PLUS",
       kNfsProgram,
       kNfsV4,
       kCompound,
       compound_args(2, {sequence(), putfh(), op(kOpReadPlus, Xdr().fixed(16).u64(0).u32(4096))}).octets(),
       {},
       {},
       5000},
      {"MNT", kMountProgram, kMountV3, 1, Xdr().opaque(20).octets(), {}},
      {"NLM4 TEST",
       kNlmProgram,
       kNlmV4,
       1,
       Xdr().opaque(8).u32(0).opaque(12).opaque(kHandleLen).opaque(16).u32(7).u64(0).u64(0).octets(),
       {}},
      {"GETACL", kNfsAclProgram, kNfsAclV3, 1, Xdr(handle3).u32(15).octets(), {}, {}, 25000},
      {"nobody's", 400000, 1, 1, pattern(64), {}},
  };
}

// As a Call of that form, with its item in two segments.
GoodMessage make_call(const NfsCall& call, Form form, std::uint32_t xid, FakeMemory& memory) {
  static const std::array<const char*, 4> names{", short", ", chunked", ", long", ", long with a chunk"};
  const OpaqueAuth cred = emit_auth_sys({1, "client", 1000, 1000, {4, 5}});
  const Octets item = call.position ? pattern(600) : Octets{};
  const bool chunked = call.position && (form == Form::kChunked || form == Form::kLongAndChunk);
  const Octets args = call.position && !chunked ? with_item(call.args, *call.position, item) : call.args;
  Octets payload = rpc_call(xid, call.program, call.version, call.procedure, cred, args);
  v1::Header header;
  header.xid = xid;
  header.credit = 8;
  std::map<std::uint32_t, Octets> contents;
  if (chunked) {
    const auto position = static_cast<std::uint32_t>(payload.size() - args.size() + call.position.value());
    header.lists.read_list = {{position, {0, 333, 0}}, {position, {0, 267, 0}}};
    contents[position] = item;
  }
  if (form == Form::kLong || form == Form::kLongAndChunk) {
    header.proc = v1::Proc::kNomsg;
    const auto len = static_cast<std::uint32_t>(payload.size());
    header.lists.read_list.insert(header.lists.read_list.begin(), {{0, {0, 50, 0}}, {0, {0, len - 50, 0}}});
    contents[0] = std::exchange(payload, {});
  }
  for (const std::uint32_t room : call.rooms) {
    SegmentArray& chunk = header.lists.write_list.emplace_back();
    if (room != 0) chunk = {{0, room / 3, 0}, {0, room - room / 3, 0}};
  }
  if (call.reply_room != 0) header.lists.reply_chunk = SegmentArray{{0, 1000, 0}, {0, call.reply_room - 1000, 0}};
  if (call.reply_room != 0 && call.reply_room <= 1000) header.lists.reply_chunk = SegmentArray{{0, call.reply_room, 0}};
  GoodMessage message;
  message.name = call.name + std::string(names[static_cast<std::size_t>(form)]);
  message.octets = testing::message(header, payload);
  attach_memory(message, memory, contents);
  return message;
}

}  // namespace

std::vector<GoodMessage> good_messages(FakeMemory& memory) {
  std::vector<GoodMessage> all;
  for (const Vector& vector : load_vectors('V')) {
    all.push_back({.name = vector.id, .octets = vector.octets, .readable = {}, .writable = {}, .mrs = {}});
    auto contents = contents_of(vector.id);
    v1::Header header;
    xdr::XdrReader in(vector.octets);
    if (v1::parse_header(in, header) == v1::HeaderError::kNone) {
      for (const ReadSegment& segment : header.lists.read_list) {
        if (segment.position != 0) contents.try_emplace(segment.position, pattern(9000));
      }
    }
    attach_memory(all.back(), memory, std::move(contents));
  }
  std::uint32_t xid = 0x20000000;
  for (const NfsCall& call : nfs_calls()) {
    all.push_back(make_call(call, Form::kShort, ++xid, memory));
    all.push_back(make_call(call, Form::kLong, ++xid, memory));
    if (!call.position) continue;
    all.push_back(make_call(call, Form::kChunked, ++xid, memory));
    all.push_back(make_call(call, Form::kLongAndChunk, ++xid, memory));
  }
  return all;
}

namespace {

// One item behind `before`, which ends with its count.
void put_item(ServedReply& reply, BufferPool& pool, Xdr before, std::optional<std::size_t> capacity) {
  const std::size_t len = std::min<std::size_t>(capacity.value_or(100), 3000);
  before.missing(static_cast<std::uint32_t>(len));
  reply.results.insert(reply.results.end(), before.octets().begin(), before.octets().end());
  Buffer buffer = pool.take(std::max<std::size_t>(len, 1));
  if (!buffer) return;
  std::fill(buffer.octets().begin(), buffer.octets().end(), std::uint8_t{0x5a});
  reply.add_item(std::move(buffer), len);
}

}  // namespace

void NfsAnswers::on_call(ServedCall call) {
  ++num_calls;
  ServedReply reply;
  const auto is = [&call](std::uint32_t version, std::uint32_t procedure) {
    return call.program == kNfsProgram && call.version == version && call.procedure == procedure;
  };
  if (is(kNfsV2, 6)) {
    put_item(reply, *pool, Xdr().u32(0).fixed(68), call.result_item_capacity());
  } else if (is(kNfsV3, 6)) {
    put_item(reply, *pool, Xdr().words({0, 0, 3000, 0}), call.result_item_capacity());
  } else if (is(kNfsV3, 5)) {
    put_item(reply, *pool, Xdr().words({0, 0}), call.result_item_capacity());
  } else if (is(kNfsV3, 16)) {
    reply.results = pattern(2000);
  } else if (is(kNfsV4, kCompound)) {
    const std::size_t num_reads = std::min<std::size_t>(call.result_capacities.size(), 4);
    reply.results = Xdr().u32(0).opaque(5).u32(static_cast<std::uint32_t>(1 + num_reads)).add(ok(kOpPutfh)).octets();
    for (std::size_t i = 0; i < num_reads; ++i) {
      put_item(reply, *pool, Xdr().words({kOpRead, 0, 1}), call.result_item_capacity(i));
    }
  } else {
    reply.results = Octets(24);
  }
  responder->reply(call.id, std::move(reply));
}

NfsResponder::NfsResponder(FakeMemory& memory, const ResponderEnd::Options& options) : end(memory, options) {
  for (const BoundProgram& program : bound_programs()) programs.push_back({&program.binding, &answers});
  Responder::Config config;
  config.credits = {.min = options.credits, .initial = options.credits, .max = options.credits};
  config.max_item = options.max_item;
  config.max_write_chunks = options.max_write_chunks;
  config.max_segments = options.max_segments;
  end.responder = std::make_unique<Responder>(end.pd, *end.link, end.pool, end.budget, programs, config);
  end.responder->start(options.reply_threshold, options.ord);
  answers.responder = end.responder.get();
  answers.pool = &end.pool;
}

Octets Mutator::spoil(const Octets& octets, const Octets& other, std::size_t max_len) {
  Octets spoiled = octets;
  for (std::size_t i = 1 + below(3); i > 0; --i) spoil_once(spoiled, other);
  if (spoiled.size() > max_len) spoiled.resize(max_len);
  return spoiled;
}

void Mutator::spoil_word(Octets& octets, std::size_t at) {
  static const std::array<std::uint32_t, 12> words{0,          1,          2,          3,          4,   5,
                                                   0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff, 600, 4096};
  std::uint32_t old = 0;
  if (!xdr::XdrReader(ConstBytes(octets).subspan(at)).u32(old)) return;
  std::uint32_t value = words[below(words.size())];
  if (below(2) == 0) value = old + static_cast<std::uint32_t>(below(9)) - 4;
  xdr::XdrWriter(MutBytes(octets).subspan(at, 4)).u32(value);
}

void Mutator::spoil_once(Octets& octets, const Octets& other) {
  if (octets.size() < 8) {
    octets.resize(octets.size() + below(40));
    return;
  }
  const std::size_t num_words = octets.size() / 4;
  const std::size_t at = below(octets.size());
  const std::size_t word = 4 * below(num_words);
  const auto begin = octets.begin() + static_cast<std::ptrdiff_t>(word);
  switch (below(12)) {
    case 0: octets[at] = static_cast<std::uint8_t>(octets[at] ^ 1u << below(8)); break;
    case 1: octets[at] = static_cast<std::uint8_t>(below(256)); break;
    case 2: octets.resize(at); break;
    case 3: {
      // Two statements, since compilers differ in the order in which they evaluate arguments.
      const auto filler = static_cast<std::uint8_t>(below(256));
      octets.resize(octets.size() + 4 * below(16), filler);
      break;
    }
    case 4: octets.erase(begin, begin + 4); break;
    case 5: {
      const Octets copy(begin, begin + 4);
      octets.insert(begin, copy.begin(), copy.end());
      break;
    }
    case 6:
      std::swap_ranges(begin, begin + 4, octets.begin() + static_cast<std::ptrdiff_t>(4 * below(num_words)));
      break;
    case 7: {
      const std::size_t from = std::min(word, other.size());
      octets.resize(word);
      octets.insert(octets.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
      break;
    }
    default: spoil_word(octets, word); break;
  }
}

std::uint64_t seed() {
  const char* const text = std::getenv("WEFT_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 8166;
}

}  // namespace weft::rpcrdma::testing
