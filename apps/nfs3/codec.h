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

// The messages: MESSAGE(Type), and MESSAGE_WITH_ITEM(Type) for messages that take an ItemForm.
#define WEFT_NFS3_MESSAGES(MESSAGE, MESSAGE_WITH_ITEM) \
  MESSAGE(NfsFh3)                                      \
  MESSAGE(Fattr3)                                      \
  MESSAGE(Sattr3)                                      \
  MESSAGE(WccData)                                     \
  MESSAGE(Diropargs3)                                  \
  MESSAGE(VoidArgs)                                    \
  MESSAGE(FhArgs)                                      \
  MESSAGE(SetattrArgs)                                 \
  MESSAGE(DiropArgs)                                   \
  MESSAGE(AccessArgs)                                  \
  MESSAGE(ReadArgs)                                    \
  MESSAGE_WITH_ITEM(WriteArgs)                         \
  MESSAGE(CreateArgs)                                  \
  MESSAGE(MkdirArgs)                                   \
  MESSAGE_WITH_ITEM(SymlinkArgs)                       \
  MESSAGE(MknodArgs)                                   \
  MESSAGE(RenameArgs)                                  \
  MESSAGE(LinkArgs)                                    \
  MESSAGE(ReaddirArgs)                                 \
  MESSAGE(ReaddirplusArgs)                             \
  MESSAGE(CommitArgs)                                  \
  MESSAGE(VoidRes)                                     \
  MESSAGE(GetattrRes)                                  \
  MESSAGE(WccRes)                                      \
  MESSAGE(LookupRes)                                   \
  MESSAGE(AccessRes)                                   \
  MESSAGE_WITH_ITEM(ReadlinkRes)                       \
  MESSAGE_WITH_ITEM(ReadRes)                           \
  MESSAGE(WriteRes)                                    \
  MESSAGE(NewObjectRes)                                \
  MESSAGE(RenameRes)                                   \
  MESSAGE(LinkRes)                                     \
  MESSAGE(ReaddirRes)                                  \
  MESSAGE(ReaddirplusRes)                              \
  MESSAGE(FsstatRes)                                   \
  MESSAGE(FsinfoRes)                                   \
  MESSAGE(PathconfRes)                                 \
  MESSAGE(CommitRes)

#define WEFT_NFS3_MESSAGE(Type)                             \
  [[nodiscard]] bool parse(XdrReader& reader, Type& value); \
  void emit(XdrWriter& writer, const Type& value);
#define WEFT_NFS3_MESSAGE_WITH_ITEM(Type)                                                      \
  [[nodiscard]] bool parse(XdrReader& reader, Type& value, ItemForm form = ItemForm::kInline); \
  void emit(XdrWriter& writer, const Type& value, ItemForm form = ItemForm::kInline);

WEFT_NFS3_MESSAGES(WEFT_NFS3_MESSAGE, WEFT_NFS3_MESSAGE_WITH_ITEM)
WEFT_NFS3_MESSAGE(PostOpAttr)
WEFT_NFS3_MESSAGE(PostOpFh3)
#undef WEFT_NFS3_MESSAGE
#undef WEFT_NFS3_MESSAGE_WITH_ITEM

}  // namespace weft::nfs3
