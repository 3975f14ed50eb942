#pragma once

#include <cstdint>

// The octets that real servers send beyond the count of a Call. An RPC-over-RDMA client needs room for the whole Reply
// before it sends the Call. Some servers count more generously than their RFC says. A Reply chunk of exactly the count
// then turns a good Reply into ERR_CHUNK. Each constant is the part of the results, in octets, that some server leaves
// out of its count. The bounds of nfs3.cc and nfs4_*.h add it.
//
//   results            beyond  source
//   READDIR3resok         104  Linux, all versions to date: nfsd3_init_dirlist_pages (fs/nfsd/nfs3proc.c) leaves all of
//   READDIRPLUS3resok          count to the entries, their end and eof; nfs3xdr.c puts dir_attributes (88) and
//                              cookieverf (8) before them. Seen with 6.1: 65,624 for a count of 65,536, also over TCP
//   READDIR4resok          16  none known: Linux (nfsd4_encode_readdir) counts verifier, end and eof. Room for a server
//                              that counts the entries only
//   LISTXATTRS4resok       16  Linux before 6.9: nfsd4_encode_listxattrs leaves all of lxa_maxcount to the names; the
//                              cookie (8), their number (4) and eof (4) come on top
//   GETDEVICEINFO4resok    24  Linux (nfsd4_encode_getdeviceinfo) counts one word for gdir_notification and may send
//                              two. Room for a server that counts the address only
//   LAYOUTGET4resok       452  loga_maxcount binds no server for the fields around 16 layouts
//   READ_PLUS4resok      1480  rpa_count counts the file's octets only; 64 segments of 20 and padding
//   readdirres (v2)         8  RFC 1094 counts the entries; their end and eof come on top. Linux counts them too
//   GETACL                  0  there is no count: 1024 entries a list are Linux's and Solaris's own limit (nfsacl.cc)
//
// A server answers ERR_CHUNK if a Reply exceeds even this. The client then asks once more (ReplyBound::may_retry_once).
namespace weft::nfsulb {

inline constexpr std::uint32_t kBeyondReaddir3 = 88 + 8 + 4 + 4;  // dir_attributes, cookieverf, end, eof
inline constexpr std::uint32_t kBeyondReaddir4 = 8 + 4 + 4;       // cookieverf, end, eof
inline constexpr std::uint32_t kBeyondListxattrs4 = 8 + 4 + 4;    // cookie, the number of names, eof
inline constexpr std::uint32_t kBeyondDeviceinfo4 = 4 + 4 + 16;   // layout type, length, notification bitmap

}  // namespace weft::nfsulb
