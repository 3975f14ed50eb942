#include "apps/dissect/argument_words.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>

#include "nfsulb/programs.h"

namespace weft::apps::dissect {

namespace {

// Arguments: "fh", "fh2", "name", "stateid", "opaque", "open", "create" as Word::Kind says; "u32:x" and "u64:x" are a
// number called x; "skip:N" passes over N octets.
struct Arguments {
  std::string_view operation;
  std::string_view words;
};
constexpr Arguments kNfs2Arguments[] = {
    {"GETATTR", "fh2"},
    {"SETATTR", "fh2"},
    {"LOOKUP", "fh2 name"},
    {"READLINK", "fh2"},
    {"READ", "fh2 u32:offset u32:count"},
    {"WRITE", "fh2 skip:4 u32:offset skip:4 u32:count"},
    {"CREATE", "fh2 name"},
    {"REMOVE", "fh2 name"},
    {"RENAME", "fh2 name fh2 name"},
    {"LINK", "fh2 fh2 name"},
    {"SYMLINK", "fh2 name"},
    {"MKDIR", "fh2 name"},
    {"RMDIR", "fh2 name"},
    {"READDIR", "fh2 u32:cookie u32:count"},
    {"STATFS", "fh2"},
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
    {"ALLOCATE", "stateid u64:offset u64:length"},
    {"BIND_CONN_TO_SESSION", "skip:16 u32:dir"},
    {"CLONE", "stateid stateid u64:from u64:to u64:count"},
    {"CLOSE", "u32:seqid"},
    {"COMMIT", "u64:offset u32:count"},
    {"COPY", "stateid stateid u64:from u64:to u64:count"},
    {"CREATE", "create"},
    {"CREATE_SESSION", "u64:clientid u32:sequence"},
    {"DEALLOCATE", "stateid u64:offset u64:length"},
    {"DESTROY_CLIENTID", "u64:clientid"},
    {"EXCHANGE_ID", "skip:8 name u32:flags"},
    {"GETXATTR", "name"},
    {"LINK", "name"},
    {"LOCK", "u32:type u32:reclaim u64:offset u64:length"},
    {"LOCKT", "u32:type u64:offset u64:length"},
    {"LOCKU", "u32:type u32:seqid stateid u64:offset u64:length"},
    {"LOOKUP", "name"},
    {"OPEN", "open"},
    {"OPEN_CONFIRM", "stateid u32:seqid"},
    {"OPEN_DOWNGRADE", "stateid u32:seqid u32:access u32:deny"},
    {"PUTFH", "fh"},
    {"READ", "stateid u64:offset u32:count"},
    {"READDIR", "u64:cookie skip:8 u32:dircount u32:maxcount"},
    {"READ_PLUS", "stateid u64:offset u32:count"},
    {"RECLAIM_COMPLETE", "u32:one_fs"},
    {"REMOVE", "name"},
    {"REMOVEXATTR", "name"},
    {"RENAME", "name name"},
    {"RENEW", "u64:clientid"},
    {"SECINFO", "name"},
    {"SECINFO_NO_NAME", "u32:style"},
    {"SEEK", "stateid u64:offset u32:what"},
    {"SEQUENCE", "skip:16 u32:seq u32:slot"},
    {"SETCLIENTID", "skip:8 name"},
    {"SETCLIENTID_CONFIRM", "u64:clientid"},
    {"SETXATTR", "u32:option name"},
    {"WRITE", "stateid u64:offset u32:stable u32:count"},
};
constexpr Arguments kCallbackArguments[] = {
    {"CB_GETATTR", "fh"},
    {"CB_RECALL", "stateid u32:truncate fh"},
    {"CB_RECALL_ANY", "u32:keep"},
    {"CB_SEQUENCE", "skip:16 u32:seq u32:slot"},
};
constexpr Arguments kMountArguments[] = {{"MNT", "name"}, {"UMNT", "name"}};
// Version 4; the offsets of versions 1 and 3 have 32 bits.
constexpr Arguments kNlm4Arguments[] = {
    {"TEST", "opaque u32:exclusive name fh opaque u32:svid u64:offset u64:length"},
    {"LOCK", "opaque u32:block u32:exclusive name fh opaque u32:svid u64:offset u64:length"},
    {"CANCEL", "opaque u32:block u32:exclusive name fh opaque u32:svid u64:offset u64:length"},
    {"UNLOCK", "opaque name fh opaque u32:svid u64:offset u64:length"},
    {"GRANTED", "opaque u32:exclusive name fh opaque u32:svid u64:offset u64:length"},
};
constexpr Arguments kNlmArguments[] = {
    {"TEST", "opaque u32:exclusive name fh opaque u32:svid u32:offset u32:length"},
    {"LOCK", "opaque u32:block u32:exclusive name fh opaque u32:svid u32:offset u32:length"},
    {"CANCEL", "opaque u32:block u32:exclusive name fh opaque u32:svid u32:offset u32:length"},
    {"UNLOCK", "opaque name fh opaque u32:svid u32:offset u32:length"},
    {"GRANTED", "opaque u32:exclusive name fh opaque u32:svid u32:offset u32:length"},
};
constexpr Arguments kNsmArguments[] = {
    {"STAT", "name"}, {"MON", "name"}, {"UNMON", "name"}, {"NOTIFY", "name u32:state"}};
constexpr Arguments kAcl3Arguments[] = {{"GETACL", "fh u32:mask"}, {"SETACL", "fh u32:mask"}, {"GETXATTRDIR", "fh"}};
constexpr Arguments kAcl2Arguments[] = {{"GETACL", "fh2 u32:mask"},
                                        {"SETACL", "fh2 u32:mask"},
                                        {"GETATTR", "fh2"},
                                        {"ACCESS", "fh2 u32:access"},
                                        {"GETXATTRDIR", "fh2"}};

std::span<const Arguments> table_of(std::uint32_t program, std::uint32_t version) {
  switch (program) {
    case nfsulb::kNfsProgram:
      if (version == nfsulb::kNfsV2) return kNfs2Arguments;
      if (version == nfsulb::kNfsV3) return kNfs3Arguments;
      return kNfs4Arguments;
    case nfsulb::kMountProgram: return kMountArguments;
    case nfsulb::kNlmProgram:
      return version == nfsulb::kNlmV4 ? std::span<const Arguments>(kNlm4Arguments) : kNlmArguments;
    case nfsulb::kNsmProgram: return kNsmArguments;
    case nfsulb::kNfsAclProgram:
      return version == nfsulb::kNfsAclV3 ? std::span<const Arguments>(kAcl3Arguments) : kAcl2Arguments;
    default: return kCallbackArguments;
  }
}

Word word_of(std::string_view text) {
  using enum Word::Kind;
  const std::string_view behind = text.substr(std::min(text.size(), text.find(':') + 1));
  if (text == "fh") return {kHandle, "fh"};
  if (text == "fh2") return {kFixedHandle, "fh"};
  if (text == "name") return {kName, "name"};
  if (text == "opaque") return {kSkipOpaque};
  if (text == "open") return {kOpen};
  if (text == "create") return {kCreate};
  if (text == "stateid") return {kStateid, "stateid"};
  if (text.starts_with("u32:")) return {kU32, behind};
  if (text.starts_with("u64:")) return {kU64, behind};
  std::size_t skip = 0;
  std::from_chars(behind.data(), behind.data() + behind.size(), skip);
  return {kSkip, {}, skip};
}

}  // namespace

std::vector<Word> argument_words(std::uint32_t program, std::uint32_t version, std::string_view operation) {
  const auto table = table_of(program, version);
  const auto row = std::ranges::find(table, operation, &Arguments::operation);
  std::vector<Word> words;
  if (row == table.end()) return words;
  std::string_view rest = row->words;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    words.push_back(word_of(rest.substr(0, end)));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return words;
}

}  // namespace weft::apps::dissect
