#include "apps/dissect/program_text.h"

#include <fmt/format.h>
#include <isa-l/crc.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "apps/common/printable.h"
#include "apps/dissect/argument_words.h"
#include "apps/dissect/nfs4_status.h"
#include "apps/dissect/rpc_layer.h"
#include "apps/nfs3/types.h"
#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "nfsulb/walk.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

// KnownProcedure: made once.
struct KnownProcedure {
  std::uint32_t number = 0;
  std::string name = {};  // "NFSv3 READ"
  bool is_compound = false;
  std::vector<Word> words = {};
};
struct KnownProgram {
  std::uint32_t program = 0, version = 0;
  const nfsulb::Program* schema = nullptr;
  std::vector<KnownProcedure> procedures = {};
};

namespace {

using rpcrdma::xdr::XdrReader;

constexpr std::size_t kMaxName = 80;  // octets of a name that are shown

std::vector<KnownProgram> make_known_programs() {
  std::vector<KnownProgram> known;
  for (const nfsulb::BoundProgram& bound : nfsulb::bound_programs()) {
    const std::uint32_t program = bound.binding.program, version = bound.binding.version;
    const char* name = nfsulb::program_name(program);
    if (name == nullptr) continue;
    KnownProgram& one = known.emplace_back(KnownProgram{program, version, bound.schema});
    for (const nfsulb::Operation& row : bound.schema->procedures) {
      one.procedures.push_back({.number = row.number,
                                .name = fmt::format("{}v{} {}", name, version, row.name),
                                .is_compound = row.is_compound,
                                .words = argument_words(program, version, row.name)});
    }
  }
  return known;
}

// A client may have chosen another number for its NFSv4 callback program: that one is not known.
const KnownProgram* find_program(std::uint32_t program, std::uint32_t version) {
  static const std::vector<KnownProgram> known = make_known_programs();
  // The last question and its answer: most messages of a connection are one program's.
  static std::uint32_t last_program = 0, last_version = 0;
  static const KnownProgram* last = nullptr;
  if (program == last_program && version == last_version) return last;
  const auto found = std::ranges::find_if(
      known, [=](const KnownProgram& one) { return one.program == program && one.version == version; });
  last_program = program;
  last_version = version;
  last = found == known.end() ? nullptr : &*found;
  return last;
}

const KnownProcedure* find_procedure(const KnownProgram* program, std::uint32_t number) {
  if (program == nullptr) return nullptr;
  const auto& rows = program->procedures;
  if (number < rows.size() && rows[number].number == number) return &rows[number];
  const auto found = std::ranges::find(rows, number, &KnownProcedure::number);
  return found == rows.end() ? nullptr : &*found;
}

// The words of the operations of a COMPOUND, by the operation.
const std::vector<Word>& words_of(const KnownProgram& program, const nfsulb::Operation& operation) {
  static std::vector<std::pair<const nfsulb::Operation*, std::vector<Word>>> known;
  const auto found =
      std::ranges::find(known, &operation, &std::pair<const nfsulb::Operation*, std::vector<Word>>::first);
  if (found != known.end()) return found->second;
  return known.emplace_back(&operation, argument_words(program.program, program.version, operation.name)).second;
}

// The octets of a name that are shown: whole characters of UTF-8.
std::size_t shown_len(ConstBytes octets) {
  constexpr std::size_t kMaxContinuations = 3;
  if (octets.size() <= kMaxName) return octets.size();
  std::size_t len = kMaxName;
  while (len > kMaxName - kMaxContinuations && (octets[len] & 0xc0u) == 0x80u) --len;
  return len;
}

std::string name_text(ConstBytes octets) {
  const ConstBytes shown = octets.first(shown_len(octets));
  return printable({reinterpret_cast<const char*>(shown.data()), shown.size()}) +
         (shown.size() < octets.size() ? "..." : "");
}

constexpr std::size_t kStateidOther = 12;  // octets of a stateid behind its seqid

std::string hex_text(ConstBytes octets) {
  std::string text;
  for (const std::uint8_t octet : octets) fmt::format_to(std::back_inserter(text), "{:02x}", octet);
  return text;
}

// ArgumentReader: the octets of arguments, and the layer that tells them.
struct ArgumentReader {
  XdrReader in;
  std::size_t at;  // of the octets in the RPC message
  RpcLayer& layer;

  std::size_t place() const { return at + in.position(); }

  bool number32(std::string_view label) {
    std::uint32_t value = 0;
    if (!in.u32(value)) return false;
    layer.line(FMT_COMPILE(" {} {}"), label, value);
    layer.field(label, place() - 4, 4, "{}", value);
    return true;
  }
  bool number64(std::string_view label) {
    std::uint64_t value = 0;
    if (!in.u64(value)) return false;
    layer.line(FMT_COMPILE(" {} {}"), label, value);
    layer.field(label, place() - 8, 8, "{}", value);
    return true;
  }
  // A file handle is long, and means nothing to a reader: its CRC-32 tells handles apart, as in Wireshark.
  void handle(ConstBytes octets, std::size_t field_at) {
    const std::uint32_t hash = ::crc32_gzip_refl(0, octets.data(), octets.size());
    layer.line(FMT_COMPILE(" fh {:08x}"), hash);
    layer.field("fh", field_at, octets.size(), "{:#010x}", hash);
  }
  bool opaque_handle() {
    ConstBytes octets;
    const std::size_t field_at = place() + 4;
    if (!in.opaque(octets)) return false;
    handle(octets, field_at);
    return true;
  }
  bool fixed_handle() {
    constexpr std::size_t kLen = 32;
    const ConstBytes octets = in.rest().first(std::min(kLen, in.remaining()));
    const std::size_t field_at = place();
    if (!in.skip(kLen)) return false;
    handle(octets, field_at);
    return true;
  }
  bool name() {
    ConstBytes octets;
    const std::size_t field_at = place() + 4;
    if (!in.opaque(octets)) return false;
    const std::string text = name_text(octets);
    layer.line(FMT_COMPILE(" '{}'"), text);
    layer.field("name", field_at, octets.size(), "{}", text);
    return true;
  }
  // stateid4 of RFC 8881 section 3.3.12: a field alone, for it says little in a line.
  bool stateid() {
    const std::size_t field_at = place();
    std::uint32_t seqid = 0;
    ConstBytes rest;
    if (!in.u32(seqid) || !in.raw(kStateidOther, rest)) return false;
    if (layer.wants_fields()) {
      layer.field("stateid", field_at, 4 + kStateidOther, "seqid {}, other 0x{}", seqid, hex_text(rest));
    }
    return true;
  }
  bool skip_opaque() {
    ConstBytes octets;
    return in.opaque(octets);
  }
  bool skip_fattr4() {
    std::uint32_t count = 0;
    return in.u32(count) && count <= in.remaining() / 4 && in.skip(std::size_t{count} * 4) && skip_opaque();
  }
  bool word(const Word& word);
  bool open();
  bool create();
};

// createhow4 of RFC 8881 section 18.16.1.
bool skip_createhow(ArgumentReader& args) {
  constexpr std::uint32_t kExclusive = 2, kExclusive41 = 3;
  constexpr std::size_t kVerifierLen = 8;
  std::uint32_t mode = 0;
  if (!args.in.u32(mode)) return false;
  if (mode >= kExclusive && !args.in.skip(kVerifierLen)) return false;
  return mode == kExclusive || (mode <= kExclusive41 && args.skip_fattr4());
}

// OPEN4args of RFC 8881 section 18.16.1: of the claims, those with a name.
bool ArgumentReader::open() {
  constexpr std::uint32_t kCreate = 1, kClaimNull = 0, kClaimDelegateCur = 2, kClaimDelegatePrev = 3;
  std::uint32_t opentype = 0, claim = 0;
  if (!in.skip(4) || !number32("access") || !number32("deny") || !in.skip(8) || !skip_opaque() || !in.u32(opentype))
    return false;
  if (opentype == kCreate) {
    layer.text(" create");
    if (!skip_createhow(*this)) return false;
  }
  if (!in.u32(claim)) return false;
  if (claim == kClaimDelegateCur && !stateid()) return false;
  if (claim == kClaimNull || claim == kClaimDelegateCur || claim == kClaimDelegatePrev) return name();
  layer.line(FMT_COMPILE(" claim {}"), claim);
  return true;
}

// CREATE4args of RFC 8881 section 18.4.1.
bool ArgumentReader::create() {
  constexpr std::uint32_t kBlk = 3, kChr = 4, kLnk = 5;
  std::uint32_t type = 0;
  if (!in.u32(type)) return false;
  layer.line(FMT_COMPILE(" type {}"), type);
  if (type == kLnk && !skip_opaque()) return false;
  if ((type == kBlk || type == kChr) && !in.skip(8)) return false;
  return name();
}

// Adds one word's value. False: the octets end here.
bool ArgumentReader::word(const Word& word) {
  using enum Word::Kind;
  switch (word.kind) {
    case kHandle: return opaque_handle();
    case kFixedHandle: return fixed_handle();
    case kName: return name();
    case kSkipOpaque: return skip_opaque();
    case kSkip: return in.skip(word.skip);
    case kU32: return number32(word.label);
    case kU64: return number64(word.label);
    case kStateid: return stateid();
    case kOpen: return open();
    case kCreate: return create();
  }
  return false;
}

void tell_words(const std::vector<Word>& words, ConstBytes octets, std::size_t at, RpcLayer& layer) {
  ArgumentReader args{XdrReader(octets), at, layer};
  for (const Word& word : words) {
    if (!args.word(word)) return;
  }
}

// Whether the first word of a procedure's results is a status of NFS.
bool has_status(const ProcedureKey& key) {
  constexpr std::uint32_t kMnt = 1;
  if (key.procedure == 0) return false;
  if (key.program == nfsulb::kMountProgram) return key.procedure == kMnt;
  return key.program == nfsulb::kNfsProgram || key.program == nfsulb::kNfsAclProgram ||
         key.program == nfsulb::kNfs4CallbackProgram;
}

// Adds the status. False: it is no success.
bool tell_status(bool is_nfs4, ConstBytes results, std::size_t at, RpcLayer& layer) {
  std::uint32_t status = 0;
  XdrReader in(results);
  if (!in.u32(status)) return true;
  const std::string_view name =
      is_nfs4 ? nfs4_status_name(status) : std::string_view(nfs3::nfsstat3_name(nfs3::Nfsstat3{status}));
  if (name.empty()) {
    layer.line(FMT_COMPILE(" status {}"), status);
  } else {
    layer.line(FMT_COMPILE(" {}"), name);
  }
  layer.field("status", at, 4, "{}", status);
  return status == 0;
}

// The words before the operations: the tag, in results behind the status, and in arguments the minor version.
void tell_compound_head(ConstBytes octets, std::size_t at, bool is_reply, RpcLayer& layer) {
  if (!layer.wants_fields()) return;
  XdrReader in(octets);
  std::uint32_t word = 0;
  ConstBytes tag;
  if (is_reply && !in.u32(word)) return;
  const std::size_t tag_at = at + in.position() + 4;
  if (!in.opaque(tag)) return;
  layer.field("tag", tag_at, tag.size(), "'{}'", name_text(tag));
  if (is_reply || !in.u32(word)) return;
  layer.field("minorversion", at + in.position() - 4, 4, "{}", word);
}

// ca_maxrequestsize of csa_back_chan_attrs of CREATE_SESSION4args (RFC 8881 section 18.36.1).
std::optional<std::uint32_t> max_callback(ConstBytes args) {
  constexpr std::size_t kClientidSequenceFlags = 16, kAttrsBeforeIrd = 24, kHeaderPad = 4;
  XdrReader in(args);
  std::uint32_t num_ird = 0, size = 0;
  if (!in.skip(kClientidSequenceFlags + kAttrsBeforeIrd) || !in.u32(num_ird) || num_ird > 1) return std::nullopt;
  if (!in.skip(num_ird * 4 + kHeaderPad) || !in.u32(size)) return std::nullopt;
  return size;
}

}  // namespace

ProcedureFacts facts_of(const ProcedureKey& key) {
  const KnownProgram* program = find_program(key.program, key.version);
  return {program, find_procedure(program, key.procedure), has_status(key)};
}

const std::string& procedure_name(const ProcedureKey& key, const ProcedureFacts& facts) {
  if (facts.procedure != nullptr) return facts.procedure->name;
  static ProcedureKey last;
  static std::string name;
  if (!name.empty() && key == last) return name;
  last = key;
  const char* known = nfsulb::program_name(key.program);
  name = known == nullptr ? fmt::format("program {} version {} procedure {}", key.program, key.version, key.procedure)
                          : fmt::format("{}v{} procedure {}", known, key.version, key.procedure);
  return name;
}

BackChannel tell_arguments(const ProcedureKey& key, const ProcedureFacts& facts, ConstBytes args, std::size_t at,
                           std::span<const std::size_t> reduced, RpcLayer& layer) {
  const auto& [program, procedure, has_status] = facts;
  if (procedure == nullptr) return {.may_be_bound = key.procedure != 0};
  if (!procedure->is_compound) {
    tell_words(procedure->words, args, at, layer);
    return {};
  }
  tell_compound_head(args, at, false, layer);
  std::vector<nfsulb::ListedOperation> operations;
  const auto walked = nfsulb::list_arguments(*program->schema, key.procedure, args, reduced, operations);
  BackChannel channel{.may_be_bound = walked != rpcrdma::Walked::kWhole};
  for (const nfsulb::ListedOperation& listed : operations) {
    layer.line(FMT_COMPILE("{}{}"), &listed == operations.data() ? " " : "; ", listed.operation->name);
    layer.field("operation", at + listed.position - 4, 4, "{} ({})", listed.operation->number, listed.operation->name);
    tell_words(words_of(*program, *listed.operation), args.subspan(listed.position), at + listed.position, layer);
    constexpr std::uint32_t kBindConnToSession = 41, kCreateSession = 43;
    if (listed.operation->number == kBindConnToSession) channel = {.may_be_bound = true};
    if (listed.operation->number == kCreateSession) {
      channel = {.may_be_bound = true, .max_request = max_callback(args.subspan(listed.position))};
    }
  }
  return channel;
}

bool tell_results(const ProcedureKey& key, const ProcedureFacts& facts, ConstBytes results, std::size_t at,
                  std::span<const std::uint32_t> reduced, RpcLayer& layer) {
  const auto& [program, procedure, has_status] = facts;
  const bool is_nfs4 = procedure != nullptr && procedure->is_compound;
  const bool succeeded = !has_status || tell_status(is_nfs4, results, at, layer);
  if (!is_nfs4) return succeeded;
  tell_compound_head(results, at, true, layer);
  std::vector<nfsulb::ListedOperation> operations;
  (void)nfsulb::list_results(*program->schema, key.procedure, results, reduced, operations);
  for (const nfsulb::ListedOperation& listed : operations) {
    layer.line(FMT_COMPILE("; {}"), listed.operation->name);
    layer.field("operation", at + listed.position - 4, 4, "{} ({})", listed.operation->number, listed.operation->name);
    const bool is_last = &listed == &operations.back();
    if (is_last && !succeeded) tell_status(true, results.subspan(listed.position), at + listed.position, layer);
  }
  return succeeded;
}

rpcrdma::Walked walk_results(const ProcedureKey& key, const ProcedureFacts& facts, ConstBytes results,
                             std::span<const std::uint32_t> reduced,
                             std::vector<std::optional<rpcrdma::EligibleItem>>& items) {
  if (facts.procedure == nullptr) return rpcrdma::Walked::kUnknown;
  return nfsulb::walk_results(*facts.program->schema, key.procedure, results, reduced, items);
}

}  // namespace weft::apps::dissect
