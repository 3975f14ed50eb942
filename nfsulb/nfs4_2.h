#pragma once

#include <array>

#include "nfsulb/nfs4_types.h"

// The operations that NFSv4.2 adds (RFC 7863), and its extended attributes (RFC 8276). Nothing in them is eligible:
// RFC 8267 does not name the data of READ_PLUS, the pattern of WRITE_SAME, nor the values of attributes (U1-6.1-05,
// U1-7-01).
namespace weft::nfsulb::v4_2 {

using namespace xdr;

inline constexpr std::uint32_t kErrOffloadNoReqs = 10094;
inline constexpr std::uint32_t kSegments = 64;      // of READ_PLUS, that a client expects at most
inline constexpr std::uint32_t kSourceServers = 8;  // of COPY_NOTIFY, likewise

inline constexpr Type stateid_offset_length = structure<stateid4, uint64, uint64>;

// NL4_NAME, NL4_URL, NL4_NETADDR
inline constexpr Type netloc4 = union_of<arm<1, utf8string>, arm<2, utf8string>, arm<3, netaddr4>>;

inline constexpr Type copy_requirements4 = structure<boolean, boolean>;
inline constexpr Type COPY4args =
    structure<stateid4, stateid4, uint64, uint64, uint64, boolean, boolean, array<netloc4>>;
inline constexpr Type COPY4res = union_or<void_type, arm<0, structure<write_response4, copy_requirements4>>,
                                          arm<kErrOffloadNoReqs, copy_requirements4>>;

inline constexpr Type COPY_NOTIFY4args = structure<stateid4, netloc4>;
inline constexpr Type COPY_NOTIFY4res = result<structure<nfstime4, stateid4, array<netloc4, kNoLimit, kSourceServers>>>;

inline constexpr Type IO_ADVISE4args = structure<stateid4, uint64, uint64, noted_bitmap4>;
inline constexpr Type IO_ADVISE4res = result<bitmap4>;

inline constexpr Type device_error4 = structure<deviceid4, nfsstat4, uint32>;
inline constexpr Type LAYOUTERROR4args = structure<uint64, uint64, stateid4, array<device_error4>>;
inline constexpr Type io_info4 = structure<uint64, uint64>;
inline constexpr Type LAYOUTSTATS4args =
    structure<uint64, uint64, stateid4, io_info4, io_info4, deviceid4, layoutupdate4>;

inline constexpr Type OFFLOAD_STATUS4res = result<structure<uint64, array<nfsstat4, 1>>>;

inline constexpr Type READ_PLUS4args = structure<stateid4, uint64, reply_count>;
// NFS4_CONTENT_DATA, NFS4_CONTENT_HOLE
inline constexpr Type read_plus_content =
    union_or<void_type, arm<0, structure<uint64, opaque<>>>, arm<1, structure<uint64, uint64>>>;
// rpa_count limits the octets of the file; each segment has up to 20 more, and padding.
inline constexpr Type READ_PLUS4res =
    result<within_count<structure<boolean, array<read_plus_content>>, 8 + kSegments*(20 + 3), Bound::kAboutCount>>;

inline constexpr Type SEEK4args = structure<stateid4, uint64, uint32>;
inline constexpr Type SEEK4res = result<structure<boolean, uint64>>;

inline constexpr Type app_data_block4 = structure<uint64, uint64, uint64, uint64, uint32, uint64, opaque<>>;
inline constexpr Type WRITE_SAME4args = structure<stateid4, uint32, app_data_block4>;

inline constexpr Type CLONE4args = structure<stateid4, stateid4, uint64, uint64, uint64>;

inline constexpr Type xattrkey4 = component4;
inline constexpr Type xattrvalue4 = opaque<>;
inline constexpr Type SETXATTR4args = structure<uint32, xattrkey4, xattrvalue4>;
inline constexpr Type LISTXATTRS4args = structure<uint64, reply_count>;
inline constexpr Type LISTXATTRS4res =
    result<within_count<structure<uint64, array<xattrkey4>, boolean>, kBeyondListxattrs4>>;

using enum Runs;
inline constexpr auto kOperations = std::to_array<Operation>({
    operation(59, "ALLOCATE", kOnce, stateid_offset_length, nfsstat4, 2),
    operation(60, "COPY", kOnce, COPY4args, COPY4res, 2),
    operation(61, "COPY_NOTIFY", kOnce, COPY_NOTIFY4args, COPY_NOTIFY4res, 2),
    operation(62, "DEALLOCATE", kOnce, stateid_offset_length, nfsstat4, 2),
    operation(63, "IO_ADVISE", kAgain, IO_ADVISE4args, IO_ADVISE4res, 2),
    operation(64, "LAYOUTERROR", kOnce, LAYOUTERROR4args, nfsstat4, 2),
    operation(65, "LAYOUTSTATS", kOnce, LAYOUTSTATS4args, nfsstat4, 2),
    operation(66, "OFFLOAD_CANCEL", kOnce, stateid4, nfsstat4, 2),
    operation(67, "OFFLOAD_STATUS", kAgain, stateid4, OFFLOAD_STATUS4res, 2),
    operation(68, "READ_PLUS", kAgain, READ_PLUS4args, READ_PLUS4res, 2),
    operation(69, "SEEK", kAgain, SEEK4args, SEEK4res, 2),
    operation(70, "WRITE_SAME", kOnce, WRITE_SAME4args, result<write_response4>, 2),
    operation(71, "CLONE", kOnce, CLONE4args, nfsstat4, 2),
    operation(72, "GETXATTR", kAgain, xattrkey4, result<xattrvalue4>, 2),
    operation(73, "SETXATTR", kOnce, SETXATTR4args, result<change_info4>, 2),
    operation(74, "LISTXATTRS", kAgain, LISTXATTRS4args, LISTXATTRS4res, 2),
    operation(75, "REMOVEXATTR", kOnce, xattrkey4, result<change_info4>, 2),
});

}  // namespace weft::nfsulb::v4_2
