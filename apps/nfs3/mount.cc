#include "apps/nfs3/mount.h"

#include "apps/nfs3/archive.h"

namespace weft::nfs3 {

using rpcrdma::xdr::XdrReader;
using rpcrdma::xdr::XdrWriter;

namespace {

template <typename A>
bool fields(A& a, Ref<A, DirpathArgs> v) {
  return a.text(v.dirpath, kMntPathLen);
}

template <typename A>
bool flavors(A& a, Ref<A, std::vector<std::uint32_t>> v) {
  if constexpr (A::kParsing) {
    std::uint32_t num_flavors = 0;
    if (!a.num(num_flavors) || num_flavors > kMaxFlavors) return false;
    v.assign(num_flavors, 0);
    for (std::uint32_t& flavor : v) {
      if (!a.num(flavor)) return false;
    }
  } else {
    a.num(static_cast<std::uint32_t>(v.size()));
    for (const std::uint32_t flavor : v) a.num(flavor);
  }
  return true;
}

template <typename A>
bool fields(A& a, Ref<A, MntRes> v) {
  return a.any_choice(v.fhs_status) &&
         (v.fhs_status != Mountstat3::kOk || (a.handle(v.fhandle) && flavors(a, v.auth_flavors)));
}

// list: a TRUE stands before each element, a FALSE before the end. `element` describes one element.
template <typename A, typename List, typename Element>
bool list(A& a, List& v, std::size_t max_num, Element element) {
  if constexpr (A::kParsing) {
    v.clear();
    for (bool follows = false;;) {
      if (!a.flag(follows)) return false;
      if (!follows) return true;
      if (v.size() == max_num || !element(v.emplace_back())) return false;
    }
  } else {
    for (const auto& one : v) {
      if (!a.flag(true) || !element(one)) return false;
    }
    return a.flag(false);
  }
}

template <typename A>
bool fields(A& a, Ref<A, DumpRes> v) {
  return list(a, v.mounts, kMaxMounts, [&a](auto& body) {
    return a.text(body.ml_hostname, kMntNameLen) && a.text(body.ml_directory, kMntPathLen);
  });
}

template <typename A>
bool fields(A& a, Ref<A, ExportRes> v) {
  return list(a, v.exports, kMaxMounts, [&a](auto& node) {
    return a.text(node.ex_dir, kMntPathLen) &&
           list(a, node.ex_groups, kMaxGroups, [&a](auto& group) { return a.text(group, kMntNameLen); });
  });
}

template <typename T>
bool parse_fields(XdrReader& reader, T& value) {
  ParseArchive archive(reader);
  return fields<ParseArchive>(archive, value);
}

template <typename T>
void emit_fields(XdrWriter& writer, const T& value) {
  EmitArchive archive(writer);
  fields<EmitArchive>(archive, value);
}

}  // namespace

bool parse(XdrReader& reader, DirpathArgs& value) {
  return parse_fields(reader, value);
}
void emit(XdrWriter& writer, const DirpathArgs& value) {
  emit_fields(writer, value);
}
bool parse(XdrReader& reader, MntRes& value) {
  return parse_fields(reader, value);
}
void emit(XdrWriter& writer, const MntRes& value) {
  emit_fields(writer, value);
}
bool parse(XdrReader& reader, DumpRes& value) {
  return parse_fields(reader, value);
}
void emit(XdrWriter& writer, const DumpRes& value) {
  emit_fields(writer, value);
}
bool parse(XdrReader& reader, ExportRes& value) {
  return parse_fields(reader, value);
}
void emit(XdrWriter& writer, const ExportRes& value) {
  emit_fields(writer, value);
}

const char* mountstat3_text(Mountstat3 status) {
  switch (status) {
    case Mountstat3::kOk: return "success";
    case Mountstat3::kPerm: return "not owner";
    case Mountstat3::kNoent: return "no such file or directory";
    case Mountstat3::kIo: return "I/O error on the server";
    case Mountstat3::kAcces: return "permission denied";
    case Mountstat3::kNotdir: return "not a directory";
    case Mountstat3::kInval: return "invalid argument";
    case Mountstat3::kNametoolong: return "name too long";
    case Mountstat3::kNotsupp: return "operation not supported";
    case Mountstat3::kServerfault: return "failure on the server";
  }
  return "unknown MOUNT status";
}

}  // namespace weft::nfs3
