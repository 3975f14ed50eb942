#include "apps/dissect/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "apps/common/printable.h"
#include "apps/nfs3/types.h"
#include "mpa/crc32c.h"
#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "nfsulb/walk.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

namespace {

using rpcrdma::xdr::XdrReader;

constexpr std::size_t kMaxName = 80;  // octets of a name that are shown

// Arguments: the main arguments of a procedure or operation by its name, as words. "fh", "name", "stateid": the words
// of the RFCs. "u32:x", "u64:x": a number called x. "skip:N": N octets.
struct Arguments {
  std::string_view operation;
  std::string_view words;
};
constexpr Arguments kNfs3Arguments[] = {
    {"GETATTR", "fh"},
    {"SETATTR", "fh"},
    {"LOOKUP", "fh name"},
    {"ACCESS", "fh u32:access"},
    {"READLINK", "fh"},
    {"READ", "fh u64:offset u32:count"},
    {"WRITE", "fh u64:offset u32:count u32:stable"},
    {"CREATE", "fh name"},
    {"MKDIR", "fh name"},
    {"SYMLINK", "fh name"},
    {"MKNOD", "fh name"},
    {"REMOVE", "fh name"},
    {"RMDIR", "fh name"},
    {"RENAME", "fh name fh name"},
    {"LINK", "fh fh name"},
    {"READDIR", "fh u64:cookie skip:8 u32:count"},
    {"READDIRPLUS", "fh u64:cookie skip:8 u32:dircount u32:maxcount"},
    {"FSSTAT", "fh"},
    {"FSINFO", "fh"},
    {"PATHCONF", "fh"},
    {"COMMIT", "fh u64:offset u32:count"},
};
constexpr Arguments kNfs4Arguments[] = {
    {"ACCESS", "u32:access"},
    {"CLOSE", "u32:seqid"},
    {"COMMIT", "u64:offset u32:count"},
    {"LINK", "name"},
    {"LOOKUP", "name"},
    {"PUTFH", "fh"},
    {"READ", "stateid u64:offset u32:count"},
    {"READDIR", "u64:cookie skip:8 u32:dircount u32:maxcount"},
    {"REMOVE", "name"},
    {"RENAME", "name name"},
    {"SECINFO", "name"},
    {"SEQUENCE", "skip:16 u32:seq u32:slot"},
    {"WRITE", "stateid u64:offset u32:stable"},
};
constexpr Arguments kMountArguments[] = {{"MNT", "name"}, {"UMNT", "name"}};

std::span<const Arguments> arguments_of(std::uint32_t program, std::uint32_t version) {
  if (program == nfsulb::kMountProgram) return kMountArguments;
  if (program != nfsulb::kNfsProgram) return {};
  if (version == nfsulb::kNfsV3) return kNfs3Arguments;
  return version == nfsulb::kNfsV4 ? kNfs4Arguments : std::span<const Arguments>{};
}

// The schema of a program. A client may have chosen another number for its NFSv4 callback program.
const nfsulb::Program* schema_of(std::uint32_t program, std::uint32_t version) {
  for (const nfsulb::BoundProgram& bound : nfsulb::bound_programs()) {
    if (bound.binding.program == program && bound.binding.version == version) return bound.schema;
  }
  return nullptr;
}

std::string name_text(ConstBytes octets) {
  const ConstBytes shown = octets.first(std::min(octets.size(), kMaxName));
  return printable({reinterpret_cast<const char*>(shown.data()), shown.size()}) +
         (shown.size() < octets.size() ? "..." : "");
}

std::uint32_t number_of(std::string_view digits) {
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// Adds one word's value. False: the octets end here.
bool add_word(std::string_view word, XdrReader& in, std::string& text) {
  const std::string_view label = word.substr(std::min(word.size(), word.find(':') + 1));
  if (word == "fh" || word == "name") {
    ConstBytes octets;
    if (!in.opaque(octets)) return false;
    // A file handle is long, and means nothing to a reader: its CRC tells handles apart.
    text += word == "fh" ? fmt::format(" fh {:08x}", mpa::crc32c(octets)) : " '" + name_text(octets) + "'";
    return true;
  }
  if (word == "stateid") return in.skip(16);
  if (word.starts_with("skip:")) return in.skip(number_of(label));
  if (word.starts_with("u64:")) {
    std::uint64_t value = 0;
    if (!in.u64(value)) return false;
    fmt::format_to(std::back_inserter(text), " {} {}", label, value);
    return true;
  }
  std::uint32_t value = 0;
  if (!in.u32(value)) return false;
  fmt::format_to(std::back_inserter(text), " {} {}", label, value);
  return true;
}

std::string words_text(std::span<const Arguments> table, std::string_view operation, ConstBytes octets) {
  const auto row = std::ranges::find(table, operation, &Arguments::operation);
  std::string text;
  if (row == table.end()) return text;
  XdrReader in(octets);
  std::string_view rest = row->words;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (!add_word(rest.substr(0, end), in, text)) break;
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return text;
}

std::string status_text(std::uint32_t version, ConstBytes results) {
  std::uint32_t status = 0;
  XdrReader in(results);
  if (!in.u32(status)) return "";
  if (version == nfsulb::kNfsV3) return std::string(nfs3::nfsstat3_name(nfs3::Nfsstat3{status}));
  return status == 0 ? "OK" : fmt::format("status {}", status);
}

}  // namespace

std::string procedure_name(std::uint32_t program, std::uint32_t version, std::uint32_t procedure) {
  const char* known = nfsulb::program_name(program);
  const nfsulb::Program* schema = schema_of(program, version);
  const nfsulb::Operation* row = schema == nullptr ? nullptr : nfsulb::find_operation(schema->procedures, procedure);
  if (known == nullptr) {
    return fmt::format("program {} version {} procedure {}", program, version, procedure);
  }
  if (row == nullptr) return fmt::format("{}v{} procedure {}", known, version, procedure);
  return fmt::format("{}v{} {}", known, version, row->name);
}

std::string argument_text(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, ConstBytes args,
                          std::span<const std::size_t> reduced) {
  const nfsulb::Program* schema = schema_of(program, version);
  if (schema == nullptr) return "";
  std::vector<nfsulb::ListedOperation> operations;
  (void)nfsulb::list_arguments(*schema, procedure, args, reduced, operations);
  const auto table = arguments_of(program, version);
  const nfsulb::Operation* row = nfsulb::find_operation(schema->procedures, procedure);
  const bool is_compound = row != nullptr && row->is_compound;
  std::string text;
  for (const nfsulb::ListedOperation& listed : operations) {
    if (is_compound) text += (text.empty() ? " " : "; ") + std::string(listed.operation->name);
    text += words_text(table, listed.operation->name, args.subspan(listed.position));
  }
  return text;
}

std::string result_text(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, ConstBytes results,
                        std::span<const std::uint32_t> reduced) {
  const bool has_status = program == nfsulb::kNfsProgram && procedure != 0;
  std::string text = has_status ? " " + status_text(version, results) : "";
  const nfsulb::Program* schema = schema_of(program, version);
  const nfsulb::Operation* row = schema == nullptr ? nullptr : nfsulb::find_operation(schema->procedures, procedure);
  if (row == nullptr || !row->is_compound) return text;
  std::vector<nfsulb::ListedOperation> operations;
  (void)nfsulb::list_results(*schema, procedure, results, reduced, operations);
  for (const nfsulb::ListedOperation& listed : operations) {
    text += "; " + std::string(listed.operation->name);
    if (&listed == &operations.back()) text += " " + status_text(version, results.subspan(listed.position));
  }
  return text;
}

}  // namespace weft::apps::dissect
