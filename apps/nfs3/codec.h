#pragma once

#include "apps/nfs3/types.h"
#include "rpcrdma/xdr/xdr.h"

// XDR of NFS version 3 (RFC 1813): a parse and an emit for every message of types.h.
//
// parse reads one message from the reader's place and leaves the reader behind it. It returns false if the octets do
// not hold a message; the reader and the value are then in any state. Items view the reader's octets. Statuses that the
// RFC does not list are kept as they are (their arm is the failure arm); every other enumeration and boolean is exact.
// emit appends one message; values must obey the limits of types.h.
//
// The four messages with a DDP-eligible item take an ItemForm. With kReduced the XDR ends behind the item's count word;
// for emit that is the place of the item (the position that rpcrdma wants).
namespace weft::nfs3 {

using rpcrdma::xdr::XdrReader;
using rpcrdma::xdr::XdrWriter;

#define WEFT_NFS3_MESSAGE(Type)                             \
  [[nodiscard]] bool parse(XdrReader& reader, Type& value); \
  void emit(XdrWriter& writer, const Type& value);
#define WEFT_NFS3_MESSAGE_WITH_ITEM(Type)                                                      \
  [[nodiscard]] bool parse(XdrReader& reader, Type& value, ItemForm form = ItemForm::kInline); \
  void emit(XdrWriter& writer, const Type& value, ItemForm form = ItemForm::kInline);

WEFT_NFS3_MESSAGE(NfsFh3)
WEFT_NFS3_MESSAGE(Fattr3)
WEFT_NFS3_MESSAGE(Sattr3)
WEFT_NFS3_MESSAGE(PostOpAttr)
WEFT_NFS3_MESSAGE(PostOpFh3)
WEFT_NFS3_MESSAGE(WccData)
WEFT_NFS3_MESSAGE(Diropargs3)

WEFT_NFS3_MESSAGE(VoidArgs)
WEFT_NFS3_MESSAGE(FhArgs)
WEFT_NFS3_MESSAGE(SetattrArgs)
WEFT_NFS3_MESSAGE(DiropArgs)
WEFT_NFS3_MESSAGE(AccessArgs)
WEFT_NFS3_MESSAGE(ReadArgs)
WEFT_NFS3_MESSAGE_WITH_ITEM(WriteArgs)
WEFT_NFS3_MESSAGE(CreateArgs)
WEFT_NFS3_MESSAGE(MkdirArgs)
WEFT_NFS3_MESSAGE_WITH_ITEM(SymlinkArgs)
WEFT_NFS3_MESSAGE(MknodArgs)
WEFT_NFS3_MESSAGE(RenameArgs)
WEFT_NFS3_MESSAGE(LinkArgs)
WEFT_NFS3_MESSAGE(ReaddirArgs)
WEFT_NFS3_MESSAGE(ReaddirplusArgs)
WEFT_NFS3_MESSAGE(CommitArgs)

WEFT_NFS3_MESSAGE(VoidRes)
WEFT_NFS3_MESSAGE(GetattrRes)
WEFT_NFS3_MESSAGE(WccRes)
WEFT_NFS3_MESSAGE(LookupRes)
WEFT_NFS3_MESSAGE(AccessRes)
WEFT_NFS3_MESSAGE_WITH_ITEM(ReadlinkRes)
WEFT_NFS3_MESSAGE_WITH_ITEM(ReadRes)
WEFT_NFS3_MESSAGE(WriteRes)
WEFT_NFS3_MESSAGE(NewObjectRes)
WEFT_NFS3_MESSAGE(RenameRes)
WEFT_NFS3_MESSAGE(LinkRes)
WEFT_NFS3_MESSAGE(ReaddirRes)
WEFT_NFS3_MESSAGE(ReaddirplusRes)
WEFT_NFS3_MESSAGE(FsstatRes)
WEFT_NFS3_MESSAGE(FsinfoRes)
WEFT_NFS3_MESSAGE(PathconfRes)
WEFT_NFS3_MESSAGE(CommitRes)

#undef WEFT_NFS3_MESSAGE
#undef WEFT_NFS3_MESSAGE_WITH_ITEM

}  // namespace weft::nfs3
