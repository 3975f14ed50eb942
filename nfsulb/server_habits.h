#pragma once

#include <cstdint>

// What real servers send beyond the count that a Call gives them. An RPC-over-RDMA client has to have room for the
// whole Reply before it sends the Call: where a server counts more generously than its RFC says, a Reply chunk of
// exactly the count turns a good Reply into ERR_CHUNK. Each constant is the part of the results, in octets, that some
// server leaves out of its count; the bounds of nfs3.cc and nfs4_*.h add it.
//
//   results            beyond  source
//   READDIR3resok         104  Linux, all versions to date: nfsd3_init_dirlist_pages (fs/nfsd/nfs3proc.c) leaves all of
//   READDIRPLUS3resok          count to the entries, their end and eof; nfs3xdr.c puts dir_attributes (88) and
//                              cookieverf (8) before them. Seen with 6.1: 65,624 for a count of 65,536, also over TCP
//   READDIR4resok          16  none known: Linux (nfsd4_encode_readdir) counts verifier, end and eof. Room for a server
//                              that counts the entries alone
//   LISTXATTRS4resok       16  Linux before 6.9: nfsd4_encode_listxattrs leaves all of lxa_maxcount to the names; the
//                              cookie (8), their number (4) and eof (4) come on top
//   GETDEVICEINFO4resok    24  Linux (nfsd4_encode_getdeviceinfo) counts one word for gdir_notification and may send
//                              two. Room for a server that counts the address alone
//   LAYOUTGET4resok       452  no server is held to loga_maxcount for what stands around 16 layouts
//   READ_PLUS4resok      1480  rpa_count is that of the file's octets; 64 segments of 20 and padding
//   readdirres (v2)         8  RFC 1094 counts the entries; their end and eof come on top. Linux counts them, too
//   GETACL                  0  nobody counts: 1024 entries a list are Linux's and Solaris's own limit (nfsacl.cc)
//
// What goes beyond all of this is answered with ERR_CHUNK and asked for once more (ReplyBound::may_retry_once).
namespace weft::nfsulb {

inline constexpr std::uint32_t kBeyondReaddir3 = 88 + 8 + 4 + 4;  // dir_attributes, cookieverf, end, eof
inline constexpr std::uint32_t kBeyondReaddir4 = 8 + 4 + 4;       // cookieverf, end, eof
inline constexpr std::uint32_t kBeyondListxattrs4 = 8 + 4 + 4;    // cookie, the number of names, eof
inline constexpr std::uint32_t kBeyondDeviceinfo4 = 4 + 4 + 16;   // layout type, length, notification bitmap

}  // namespace weft::nfsulb
