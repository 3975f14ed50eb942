#include "apps/nfs3/codec.h"

#include <algorithm>

#include "apps/nfs3/archive.h"

namespace weft::nfs3 {
namespace {

constexpr bool ok(Nfsstat3 status) {
  return status == Nfsstat3::kOk;
}

template <typename A>
bool fields(A& a, Ref<A, NfsFh3> v) {
  return a.handle(v);
}

template <typename A>
bool fields(A& a, Ref<A, Nfstime3> v) {
  return a.num(v.seconds) && a.num(v.nseconds);
}

template <typename A>
bool fields(A& a, Ref<A, Fattr3> v) {
  return a.choice(v.type, Ftype3::kReg, Ftype3::kFifo) && a.num(v.mode) && a.num(v.nlink) && a.num(v.uid) &&
         a.num(v.gid) && a.num(v.size) && a.num(v.used) && a.num(v.rdev.specdata1) && a.num(v.rdev.specdata2) &&
         a.num(v.fsid) && a.num(v.fileid) && fields(a, v.atime) && fields(a, v.mtime) && fields(a, v.ctime);
}

template <typename A>
bool fields(A& a, Ref<A, WccAttr> v) {
  return a.num(v.size) && fields(a, v.mtime) && fields(a, v.ctime);
}

// optional_fields: the unions over a boolean with a void FALSE arm (post_op_attr, pre_op_attr, post_op_fh3, guard).
template <typename A, typename O>
bool optional_fields(A& a, O& v) {
  bool is_present = false;
  return a.present(v, is_present) && (!is_present || fields(a, *v));
}

template <typename A, typename O>
bool optional_num(A& a, O& v) {
  bool is_present = false;
  return a.present(v, is_present) && (!is_present || a.num(*v));
}

template <typename A>
bool fields(A& a, Ref<A, WccData> v) {
  return optional_fields(a, v.before) && optional_fields(a, v.after);
}

template <typename A>
bool fields(A& a, Ref<A, SetTime> v) {
  return a.choice(v.how, TimeHow::kDontChange, TimeHow::kSetToClientTime) &&
         (v.how != TimeHow::kSetToClientTime || fields(a, v.time));
}

template <typename A>
bool fields(A& a, Ref<A, Sattr3> v) {
  return optional_num(a, v.mode) && optional_num(a, v.uid) && optional_num(a, v.gid) && optional_num(a, v.size) &&
         fields(a, v.atime) && fields(a, v.mtime);
}

template <typename A>
bool fields(A& a, Ref<A, Diropargs3> v) {
  return a.handle(v.dir) && a.text(v.name, rpcrdma::xdr::kNoLimit);
}

template <typename A>
bool fields(A&, Ref<A, VoidArgs>) {
  return true;
}

template <typename A>
bool fields(A& a, Ref<A, FhArgs> v) {
  return a.handle(v.object);
}

template <typename A>
bool fields(A& a, Ref<A, SetattrArgs> v) {
  return a.handle(v.object) && fields(a, v.new_attributes) && optional_fields(a, v.guard);
}

template <typename A>
bool fields(A& a, Ref<A, DiropArgs> v) {
  return fields(a, v.what);
}

template <typename A>
bool fields(A& a, Ref<A, AccessArgs> v) {
  return a.handle(v.object) && a.num(v.access);
}

template <typename A>
bool fields(A& a, Ref<A, ReadArgs> v) {
  return a.handle(v.file) && a.num(v.offset) && a.num(v.count);
}

template <typename A>
bool fields(A& a, Ref<A, WriteArgs> v) {
  return a.handle(v.file) && a.num(v.offset) && a.num(v.count) &&
         a.choice(v.stable, StableHow::kUnstable, StableHow::kFileSync) && a.item(v.data, kMaxData);
}

template <typename A>
bool fields(A& a, Ref<A, CreateArgs> v) {
  return fields(a, v.where) && a.choice(v.mode, Createmode3::kUnchecked, Createmode3::kExclusive) &&
         (v.mode == Createmode3::kExclusive ? a.fixed(v.verf) : fields(a, v.obj_attributes));
}

template <typename A>
bool fields(A& a, Ref<A, MkdirArgs> v) {
  return fields(a, v.where) && fields(a, v.attributes);
}

template <typename A>
bool fields(A& a, Ref<A, SymlinkArgs> v) {
  return fields(a, v.where) && fields(a, v.symlink_attributes) && a.item(v.symlink_data, kMaxPath);
}

template <typename A>
bool fields(A& a, Ref<A, MknodArgs> v) {
  if (!fields(a, v.where) || !a.choice(v.type, Ftype3::kReg, Ftype3::kFifo)) return false;
  const bool device = v.type == Ftype3::kChr || v.type == Ftype3::kBlk;
  const bool pipe = v.type == Ftype3::kSock || v.type == Ftype3::kFifo;
  if ((device || pipe) && !fields(a, v.attributes)) return false;
  return !device || (a.num(v.spec.specdata1) && a.num(v.spec.specdata2));
}

template <typename A>
bool fields(A& a, Ref<A, RenameArgs> v) {
  return fields(a, v.from) && fields(a, v.to);
}

template <typename A>
bool fields(A& a, Ref<A, LinkArgs> v) {
  return a.handle(v.file) && fields(a, v.link);
}

template <typename A>
bool fields(A& a, Ref<A, ReaddirArgs> v) {
  return a.handle(v.dir) && a.num(v.cookie) && a.fixed(v.cookieverf) && a.num(v.count);
}

template <typename A>
bool fields(A& a, Ref<A, ReaddirplusArgs> v) {
  return a.handle(v.dir) && a.num(v.cookie) && a.fixed(v.cookieverf) && a.num(v.dircount) && a.num(v.maxcount);
}

template <typename A>
bool fields(A& a, Ref<A, CommitArgs> v) {
  return a.handle(v.file) && a.num(v.offset) && a.num(v.count);
}

template <typename A>
bool fields(A&, Ref<A, VoidRes>) {
  return true;
}

template <typename A>
bool fields(A& a, Ref<A, GetattrRes> v) {
  return a.any_choice(v.status) && (!ok(v.status) || fields(a, v.obj_attributes));
}

template <typename A>
bool fields(A& a, Ref<A, WccRes> v) {
  return a.any_choice(v.status) && fields(a, v.wcc);
}

template <typename A>
bool fields(A& a, Ref<A, LookupRes> v) {
  return a.any_choice(v.status) && (!ok(v.status) || (a.handle(v.object) && optional_fields(a, v.obj_attributes))) &&
         optional_fields(a, v.dir_attributes);
}

template <typename A>
bool fields(A& a, Ref<A, AccessRes> v) {
  return a.any_choice(v.status) && optional_fields(a, v.obj_attributes) && (!ok(v.status) || a.num(v.access));
}

template <typename A>
bool fields(A& a, Ref<A, ReadlinkRes> v) {
  return a.any_choice(v.status) && optional_fields(a, v.symlink_attributes) &&
         (!ok(v.status) || a.item(v.data, kMaxPath));
}

template <typename A>
bool fields(A& a, Ref<A, ReadRes> v) {
  return a.any_choice(v.status) && optional_fields(a, v.file_attributes) &&
         (!ok(v.status) || (a.num(v.count) && a.flag(v.eof) && a.item(v.data, kMaxData)));
}

template <typename A>
bool fields(A& a, Ref<A, WriteRes> v) {
  return a.any_choice(v.status) && fields(a, v.file_wcc) &&
         (!ok(v.status) ||
          (a.num(v.count) && a.choice(v.committed, StableHow::kUnstable, StableHow::kFileSync) && a.fixed(v.verf)));
}

template <typename A>
bool fields(A& a, Ref<A, NewObjectRes> v) {
  return a.any_choice(v.status) &&
         (!ok(v.status) || (optional_fields(a, v.obj) && optional_fields(a, v.obj_attributes))) && fields(a, v.dir_wcc);
}

template <typename A>
bool fields(A& a, Ref<A, RenameRes> v) {
  return a.any_choice(v.status) && fields(a, v.fromdir_wcc) && fields(a, v.todir_wcc);
}

template <typename A>
bool fields(A& a, Ref<A, LinkRes> v) {
  return a.any_choice(v.status) && optional_fields(a, v.file_attributes) && fields(a, v.linkdir_wcc);
}

template <typename A>
bool fields(A& a, Ref<A, Entry3> v) {
  return a.num(v.fileid) && a.text(v.name, kMaxName) && a.num(v.cookie);
}

template <typename A>
bool fields(A& a, Ref<A, Entryplus3> v) {
  return a.num(v.fileid) && a.text(v.name, kMaxName) && a.num(v.cookie) && optional_fields(a, v.name_attributes) &&
         optional_fields(a, v.name_handle);
}

// entry_list: a linked list in XDR. A TRUE stands before each element, a FALSE before the end.
template <typename A, typename List>
bool entry_list(A& a, List& list) {
  if constexpr (A::kParsing) {
    list.clear();
    for (bool follows = false;;) {
      if (!a.flag(follows)) return false;
      if (!follows) return true;
      if (list.size() == kMaxEntries || !fields(a, list.emplace_back())) return false;
    }
  } else {
    for (const auto& entry : list) {
      if (!a.flag(true) || !fields(a, entry)) return false;
    }
    return a.flag(false);
  }
}

template <typename A>
bool fields(A& a, Ref<A, ReaddirRes> v) {
  return a.any_choice(v.status) && optional_fields(a, v.dir_attributes) &&
         (!ok(v.status) || (a.fixed(v.cookieverf) && entry_list(a, v.entries) && a.flag(v.eof)));
}

template <typename A>
bool fields(A& a, Ref<A, ReaddirplusRes> v) {
  return a.any_choice(v.status) && optional_fields(a, v.dir_attributes) &&
         (!ok(v.status) || (a.fixed(v.cookieverf) && entry_list(a, v.entries) && a.flag(v.eof)));
}

template <typename A>
bool fields(A& a, Ref<A, FsstatRes> v) {
  return a.any_choice(v.status) && optional_fields(a, v.obj_attributes) &&
         (!ok(v.status) || (a.num(v.tbytes) && a.num(v.fbytes) && a.num(v.abytes) && a.num(v.tfiles) &&
                            a.num(v.ffiles) && a.num(v.afiles) && a.num(v.invarsec)));
}

template <typename A>
bool fields(A& a, Ref<A, FsinfoRes> v) {
  return a.any_choice(v.status) && optional_fields(a, v.obj_attributes) &&
         (!ok(v.status) || (a.num(v.rtmax) && a.num(v.rtpref) && a.num(v.rtmult) && a.num(v.wtmax) && a.num(v.wtpref) &&
                            a.num(v.wtmult) && a.num(v.dtpref) && a.num(v.maxfilesize) && fields(a, v.time_delta) &&
                            a.num(v.properties)));
}

template <typename A>
bool fields(A& a, Ref<A, PathconfRes> v) {
  return a.any_choice(v.status) && optional_fields(a, v.obj_attributes) &&
         (!ok(v.status) || (a.num(v.linkmax) && a.num(v.name_max) && a.flag(v.no_trunc) && a.flag(v.chown_restricted) &&
                            a.flag(v.case_insensitive) && a.flag(v.case_preserving)));
}

template <typename A>
bool fields(A& a, Ref<A, CommitRes> v) {
  return a.any_choice(v.status) && fields(a, v.file_wcc) && (!ok(v.status) || a.fixed(v.verf));
}

}  // namespace

bool parse(XdrReader& reader, PostOpAttr& value) {
  ParseArchive archive(reader);
  return optional_fields(archive, value);
}

void emit(XdrWriter& writer, const PostOpAttr& value) {
  EmitArchive archive(writer);
  optional_fields(archive, value);
}

bool parse(XdrReader& reader, PostOpFh3& value) {
  ParseArchive archive(reader);
  return optional_fields(archive, value);
}

void emit(XdrWriter& writer, const PostOpFh3& value) {
  EmitArchive archive(writer);
  optional_fields(archive, value);
}

#define WEFT_NFS3_MESSAGE(Type)                     \
  bool parse(XdrReader& reader, Type& value) {      \
    ParseArchive archive(reader);                   \
    return fields<ParseArchive>(archive, value);    \
  }                                                 \
  void emit(XdrWriter& writer, const Type& value) { \
    EmitArchive archive(writer);                    \
    fields<EmitArchive>(archive, value);            \
  }
#define WEFT_NFS3_MESSAGE_WITH_ITEM(Type)                          \
  bool parse(XdrReader& reader, Type& value, ItemForm form) {      \
    ParseArchive archive(reader, form);                            \
    return fields<ParseArchive>(archive, value);                   \
  }                                                                \
  void emit(XdrWriter& writer, const Type& value, ItemForm form) { \
    EmitArchive archive(writer, form);                             \
    fields<EmitArchive>(archive, value);                           \
  }

WEFT_NFS3_MESSAGES(WEFT_NFS3_MESSAGE, WEFT_NFS3_MESSAGE_WITH_ITEM)

}  // namespace weft::nfs3
