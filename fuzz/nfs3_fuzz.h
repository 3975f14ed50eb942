#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "apps/nfs3/codec.h"

// Shared by the targets of NFSv3. A finding is an abort.
namespace weft::nfs3::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

template <typename T, typename... Form>
std::vector<std::uint8_t> emitted(const T& value, Form... form) {
  std::vector<std::uint8_t> octets;
  XdrWriter writer(octets);
  emit(writer, value, form...);
  return octets;
}

// parse-emit-parse: a parsed value is emitted, the emitted octets parse to their end, and the second value is emitted
// as the same octets. (The octets first parsed may differ: padding need not be zero.)
template <typename T, typename... Form>
bool parse_emit_parse(ConstBytes input, Form... form) {
  XdrReader reader(input);
  T first;
  if (!parse(reader, first, form...)) return false;
  const std::vector<std::uint8_t> octets = emitted(first, form...);
  require(octets.size() == reader.position());
  XdrReader again(octets);
  T second;
  require(parse(again, second, form...));
  require(again.at_end());
  require(emitted(second, form...) == octets);
  return true;
}

template <typename T>
bool parse_emit_parse_both(ConstBytes input) {
  const bool whole = parse_emit_parse<T>(input, ItemForm::kInline);
  return parse_emit_parse<T>(input, ItemForm::kReduced) || whole;
}

// Whether the octets behind the procedure's number begin with arguments of it.
inline bool parses_as_args(std::uint32_t procedure, ConstBytes input) {
  switch (static_cast<Proc>(procedure)) {
    case Proc::kNull: return parse_emit_parse<VoidArgs>(input);
    case Proc::kGetattr:
    case Proc::kReadlink:
    case Proc::kFsstat:
    case Proc::kFsinfo:
    case Proc::kPathconf: return parse_emit_parse<FhArgs>(input);
    case Proc::kSetattr: return parse_emit_parse<SetattrArgs>(input);
    case Proc::kLookup:
    case Proc::kRemove:
    case Proc::kRmdir: return parse_emit_parse<DiropArgs>(input);
    case Proc::kAccess: return parse_emit_parse<AccessArgs>(input);
    case Proc::kRead: return parse_emit_parse<ReadArgs>(input);
    case Proc::kWrite: return parse_emit_parse_both<WriteArgs>(input);
    case Proc::kCreate: return parse_emit_parse<CreateArgs>(input);
    case Proc::kMkdir: return parse_emit_parse<MkdirArgs>(input);
    case Proc::kSymlink: return parse_emit_parse_both<SymlinkArgs>(input);
    case Proc::kMknod: return parse_emit_parse<MknodArgs>(input);
    case Proc::kRename: return parse_emit_parse<RenameArgs>(input);
    case Proc::kLink: return parse_emit_parse<LinkArgs>(input);
    case Proc::kReaddir: return parse_emit_parse<ReaddirArgs>(input);
    case Proc::kReaddirplus: return parse_emit_parse<ReaddirplusArgs>(input);
    case Proc::kCommit: return parse_emit_parse<CommitArgs>(input);
  }
  return false;
}

}  // namespace weft::nfs3::fuzz
