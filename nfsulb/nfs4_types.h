#pragma once

#include "nfsulb/schema.h"

// Basic types of NFS version 4 (RFC 7863).
namespace weft::nfsulb {

inline constexpr Type utf8string = xdr::string<>;
inline constexpr Type component4 = utf8string;
inline constexpr Type nfs_fh4 = xdr::opaque<128>;
inline constexpr Type verifier4 = xdr::opaque_fixed<8>;
inline constexpr Type sessionid4 = xdr::opaque_fixed<16>;
inline constexpr Type deviceid4 = xdr::opaque_fixed<16>;
inline constexpr Type stateid4 = xdr::structure<xdr::uint32, xdr::opaque_fixed<12>>;
inline constexpr Type nfstime4 = xdr::structure<xdr::uint64, xdr::uint32>;
inline constexpr Type settime4 = xdr::union_or<xdr::void_type, xdr::arm<1, nfstime4>>;
inline constexpr Type fsid4 = xdr::structure<xdr::uint64, xdr::uint64>;
inline constexpr Type specdata4 = xdr::structure<xdr::uint32, xdr::uint32>;
inline constexpr Type change_info4 = xdr::structure<xdr::boolean, xdr::uint64, xdr::uint64>;
inline constexpr Type nfsace4 = xdr::structure<xdr::uint32, xdr::uint32, xdr::uint32, utf8string>;
inline constexpr Type netaddr4 = xdr::structure<xdr::string<>, xdr::string<>>;
inline constexpr Type nfs_impl_id4 = xdr::structure<utf8string, utf8string, nfstime4>;
// open_owner4, lock_owner4
inline constexpr Type state_owner4 = xdr::structure<xdr::uint64, xdr::opaque<1024>>;

// As a result, it has as many words as the Call's bitmap, or as all bits need.
inline constexpr Type bitmap4 = xdr::bounded<xdr::array<xdr::uint32>, Bound::kWords>;
inline constexpr Type noted_bitmap4 = xdr::noted<bitmap4, Note::kWords>;
inline constexpr Type attrlist4 = xdr::opaque<>;
// fattr4 is the form in a Call. requested_fattr4 is the form in a result: the attributes that the Call's attr_request
// asked for. The attributes themselves are not parsed.
inline constexpr Type fattr4 = xdr::structure<noted_bitmap4, attrlist4>;
inline constexpr Type attr_request4 = xdr::noted<bitmap4, Note::kAttributes>;
inline constexpr Type requested_fattr4 = xdr::structure<bitmap4, xdr::bounded<attrlist4, Bound::kAttributes>>;

// pNFS: a layout type and its body.
inline constexpr Type layout_content4 = xdr::structure<xdr::uint32, xdr::opaque<>>;
inline constexpr Type layouthint4 = layout_content4;
inline constexpr Type layoutupdate4 = layout_content4;
inline constexpr Type device_addr4 = layout_content4;

// Results with only a status.
inline constexpr Type nfsstat4 = xdr::uint32;

// Delegations (RFC 7863, OPEN4resok).
inline constexpr Type nfs_space_limit4 = xdr::union_of<xdr::arm<1, xdr::uint64>, xdr::arm<2, specdata4>>;
inline constexpr Type open_read_delegation4 = xdr::structure<stateid4, xdr::boolean, nfsace4>;
inline constexpr Type open_write_delegation4 = xdr::structure<stateid4, xdr::boolean, nfs_space_limit4, nfsace4>;
// WND4_CONTENTION, WND4_RESOURCE
inline constexpr Type open_none_delegation4 =
    xdr::union_or<xdr::void_type, xdr::arm<1, xdr::boolean>, xdr::arm<2, xdr::boolean>>;
// OPEN_DELEGATE_NONE, _READ, _WRITE, _NONE_EXT
inline constexpr Type open_delegation4 =
    xdr::union_of<xdr::arm<0>, xdr::arm<1, open_read_delegation4>, xdr::arm<2, open_write_delegation4>,
                  xdr::arm<3, open_none_delegation4>>;

inline constexpr Type write_response4 = xdr::structure<xdr::array<stateid4, 1>, xdr::uint64, xdr::uint32, verifier4>;

}  // namespace weft::nfsulb
