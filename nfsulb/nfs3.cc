#include "nfsulb/nfs3.h"

#include <algorithm>
#include <span>

#include "nfsulb/programs.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::nfsulb {
namespace {

using rpcrdma::ConstBytes;
using rpcrdma::ItemPlace;
using rpcrdma::xdr::XdrReader;

constexpr std::uint32_t kMaxFh = 64;
constexpr std::size_t kStatus = 4;
constexpr std::size_t kVerfLen = 8;
constexpr std::size_t kFattr = 84;
constexpr std::size_t kPostOpAttr = 4 + kFattr;
constexpr std::size_t kWccData = 4 + 24 + kPostOpAttr;
constexpr std::size_t kNfsFh = 4 + kMaxFh;
constexpr std::size_t kNewObject = kStatus + (4 + kNfsFh) + kPostOpAttr + kWccData;
constexpr std::size_t kReaddirFail = kStatus + kPostOpAttr;

// Field: what the arguments of a procedure consist of, in RFC 1813's order.
enum class Field : std::uint8_t {
  kFh,
  kName,  // filename3
  kU32,
  kU64,
  kVerf,
  kSattr,
  kGuard,       // sattrguard3
  kCreatehow,   // createhow3
  kMknoddata,   // mknoddata3
  kItem,        // the eligible argument, always the last
  kReplyCount,  // a u32: octets of results that the Call allows behind the status
};

struct Procedure {
  std::span<const Field> arguments;
  std::size_t max_results;  // octets without the eligible result; a kReplyCount replaces it
  bool eligible_result;
};

using enum Field;
constexpr Field kHandleOnly[] = {kFh};
constexpr Field kHandleName[] = {kFh, kName};
constexpr Field kSetattrArgs[] = {kFh, kSattr, kGuard};
constexpr Field kAccessArgs[] = {kFh, kU32};
constexpr Field kReadArgs[] = {kFh, kU64, kU32};
constexpr Field kWriteArgs[] = {kFh, kU64, kU32, kU32, kItem};
constexpr Field kCreateArgs[] = {kFh, kName, kCreatehow};
constexpr Field kMkdirArgs[] = {kFh, kName, kSattr};
constexpr Field kSymlinkArgs[] = {kFh, kName, kSattr, kItem};
constexpr Field kMknodArgs[] = {kFh, kName, kMknoddata};
constexpr Field kRenameArgs[] = {kFh, kName, kFh, kName};
constexpr Field kLinkArgs[] = {kFh, kFh, kName};
constexpr Field kReaddirArgs[] = {kFh, kU64, kVerf, kReplyCount};
constexpr Field kReaddirplusArgs[] = {kFh, kU64, kVerf, kU32, kReplyCount};
constexpr Field kCommitArgs[] = {kFh, kU64, kU32};

// The 22 procedures in the order of their numbers.
constexpr Procedure kProcedures[] = {
    {{}, 0, false},                                                   // NULL
    {kHandleOnly, kStatus + kFattr, false},                           // GETATTR
    {kSetattrArgs, kStatus + kWccData, false},                        // SETATTR
    {kHandleName, kStatus + kNfsFh + 2 * kPostOpAttr, false},         // LOOKUP
    {kAccessArgs, kStatus + kPostOpAttr + 4, false},                  // ACCESS
    {kHandleOnly, kStatus + kPostOpAttr + 4, true},                   // READLINK: and the text, U1-4-04
    {kReadArgs, kStatus + kPostOpAttr + 4 + 4 + 4, true},             // READ: and the data, U1-4-03
    {kWriteArgs, kStatus + kWccData + 4 + 4 + kVerfLen, false},       // WRITE
    {kCreateArgs, kNewObject, false},                                 // CREATE
    {kMkdirArgs, kNewObject, false},                                  // MKDIR
    {kSymlinkArgs, kNewObject, false},                                // SYMLINK
    {kMknodArgs, kNewObject, false},                                  // MKNOD
    {kHandleName, kStatus + kWccData, false},                         // REMOVE
    {kHandleName, kStatus + kWccData, false},                         // RMDIR
    {kRenameArgs, kStatus + 2 * kWccData, false},                     // RENAME
    {kLinkArgs, kStatus + kPostOpAttr + kWccData, false},             // LINK
    {kReaddirArgs, kReaddirFail, false},                              // READDIR
    {kReaddirplusArgs, kReaddirFail, false},                          // READDIRPLUS
    {kHandleOnly, kStatus + kPostOpAttr + 6 * 8 + 4, false},          // FSSTAT
    {kHandleOnly, kStatus + kPostOpAttr + 7 * 4 + 8 + 8 + 4, false},  // FSINFO
    {kHandleOnly, kStatus + kPostOpAttr + 6 * 4, false},              // PATHCONF
    {kCommitArgs, kStatus + kWccData + kVerfLen, false},              // COMMIT
};

const Procedure* find(std::uint32_t procedure) {
  return procedure < std::size(kProcedures) ? &kProcedures[procedure] : nullptr;
}

// Walk: what there is to know of a Call's arguments after one pass over them.
struct Walk {
  std::optional<ItemPlace> item;
  std::optional<std::uint32_t> reply_count;
};

bool skip_if_set(XdrReader& reader, std::size_t len) {
  bool set = false;
  return reader.boolean(set) && (!set || reader.skip(len));
}

bool skip_set_time(XdrReader& reader) {
  std::uint32_t how = 0;
  return reader.u32(how) && how <= 2 && (how != 2 || reader.skip(8));
}

bool skip_sattr(XdrReader& reader) {
  return skip_if_set(reader, 4) && skip_if_set(reader, 4) && skip_if_set(reader, 4) && skip_if_set(reader, 8) &&
         skip_set_time(reader) && skip_set_time(reader);
}

bool skip_mknoddata(XdrReader& reader) {
  constexpr std::uint32_t kBlk = 3, kChr = 4, kSock = 6, kFifo = 7;
  std::uint32_t type = 0;
  if (!reader.u32(type) || type < 1 || type > kFifo) return false;
  const bool device = type == kBlk || type == kChr;
  const bool pipe = type == kSock || type == kFifo;
  return (!(device || pipe) || skip_sattr(reader)) && (!device || reader.skip(8));
}

bool skip_createhow(XdrReader& reader) {
  constexpr std::uint32_t kExclusive = 2;
  std::uint32_t mode = 0;
  if (!reader.u32(mode) || mode > kExclusive) return false;
  return mode == kExclusive ? reader.skip(kVerfLen) : skip_sattr(reader);
}

bool walk_field(XdrReader& reader, Field field, Walk& found) {
  ConstBytes ignored;
  std::uint32_t number = 0;
  switch (field) {
    case Field::kFh: return reader.opaque(ignored, kMaxFh);
    case Field::kName: return reader.opaque(ignored);
    case Field::kU32: return reader.skip(4);
    case Field::kU64:
    case Field::kVerf: return reader.skip(8);
    case Field::kSattr: return skip_sattr(reader);
    case Field::kGuard: return skip_if_set(reader, 8);
    case Field::kCreatehow: return skip_createhow(reader);
    case Field::kMknoddata: return skip_mknoddata(reader);
    case Field::kItem:
      if (!reader.u32(number)) return false;
      found.item = ItemPlace{reader.position(), number};
      return true;
    case Field::kReplyCount:
      if (!reader.u32(number)) return false;
      found.reply_count = number;
      return true;
  }
  return false;
}

// walk stops behind the last argument, or behind the count word of an item; `reader` stands there then.
std::optional<Walk> walk(const Procedure& procedure, XdrReader& reader) {
  Walk found;
  for (const Field field : procedure.arguments) {
    if (!walk_field(reader, field, found)) return std::nullopt;
  }
  return found;
}

std::optional<ItemPlace> find_argument(std::uint32_t procedure, ConstBytes reduced_args) {
  const Procedure* row = find(procedure);
  if (!row) return std::nullopt;
  XdrReader reader(reduced_args);
  const std::optional<Walk> found = walk(*row, reader);
  if (!found || !reader.at_end()) return std::nullopt;
  return found->item;
}

bool has_eligible_result(std::uint32_t procedure) {
  const Procedure* row = find(procedure);
  return row && row->eligible_result;
}

std::optional<std::size_t> max_results(std::uint32_t procedure, ConstBytes args) {
  const Procedure* row = find(procedure);
  if (!row) return std::nullopt;
  XdrReader reader(args);
  const std::optional<Walk> found = walk(*row, reader);
  if (!found) return std::nullopt;
  const bool inline_item = found->item && reader.remaining() > 0;
  if (inline_item && !reader.skip(rpcrdma::xdr::round_up(found->item->len))) return std::nullopt;
  if (!reader.at_end()) return std::nullopt;
  // U1-3-04: the client's own limit, and what the failure arm takes at least.
  if (found->reply_count) return std::max(row->max_results, kStatus + std::size_t{*found->reply_count});
  return row->max_results;
}

constexpr rpcrdma::Binding kNfs3 = {kNfsProgram, kNfsV3, find_argument, has_eligible_result, max_results};

}  // namespace

const rpcrdma::Binding& nfs3_binding() {
  return kNfs3;
}

}  // namespace weft::nfsulb
