#pragma once

#include <array>

#include "nfsulb/nfs4_0.h"

// The operations that NFSv4.1 adds (RFC 5662). Nothing in them is eligible (U1-6.1-05, U1-6.6-01).
namespace weft::nfsulb::v4_1 {

using namespace xdr;

inline constexpr std::uint32_t kErrTooSmall = 10005;
inline constexpr std::uint32_t kErrLayoutTryLater = 10058;
inline constexpr std::uint32_t kLayouts = 16;     // of LAYOUTGET, that a client expects at most
inline constexpr std::uint32_t kGssHandles = 16;  // of EXCHANGE_ID, likewise; and the octets of each
inline constexpr std::uint32_t kGssHandleLen = 32;

// RFC 5531 appendix A
inline constexpr Type authsys_parms = structure<uint32, opaque<255>, uint32, uint32, array<uint32, 16>>;
inline constexpr Type gsshandle4 = opaque<kNoLimit, kGssHandleLen>;
inline constexpr Type gss_cb_handles4 = structure<uint32, gsshandle4, gsshandle4>;
// AUTH_NONE, AUTH_SYS, RPCSEC_GSS
inline constexpr Type callback_sec_parms4 = union_of<arm<0>, arm<1, authsys_parms>, arm<6, gss_cb_handles4>>;
inline constexpr Type BACKCHANNEL_CTL4args = structure<uint32, array<callback_sec_parms4>>;

inline constexpr Type BIND_CONN_TO_SESSION4args = structure<sessionid4, uint32, boolean>;
inline constexpr Type BIND_CONN_TO_SESSION4res = result<structure<sessionid4, uint32, boolean>>;

inline constexpr Type client_owner4 = structure<verifier4, opaque<1024>>;
inline constexpr Type server_owner4 = structure<uint64, opaque<1024>>;
inline constexpr Type state_protect_ops4 = structure<bitmap4, bitmap4>;
inline constexpr Type sec_oids4 = array<opaque<>>;
inline constexpr Type ssv_sp_parms4 = structure<state_protect_ops4, sec_oids4, sec_oids4, uint32, uint32>;
inline constexpr Type ssv_prot_info4 =
    structure<state_protect_ops4, uint32, uint32, uint32, uint32, array<gsshandle4, kNoLimit, kGssHandles>>;
// SP4_NONE, SP4_MACH_CRED, SP4_SSV
inline constexpr Type state_protect4_a = union_of<arm<0>, arm<1, state_protect_ops4>, arm<2, ssv_sp_parms4>>;
inline constexpr Type state_protect4_r = union_of<arm<0>, arm<1, state_protect_ops4>, arm<2, ssv_prot_info4>>;
inline constexpr Type EXCHANGE_ID4args = structure<client_owner4, uint32, state_protect4_a, array<nfs_impl_id4, 1>>;
inline constexpr Type EXCHANGE_ID4res =
    result<structure<uint64, uint32, uint32, state_protect4_r, server_owner4, opaque<1024>, array<nfs_impl_id4, 1>>>;

inline constexpr Type channel_attrs4 = structure<opaque_fixed<6 * 4>, array<uint32, 1>>;
inline constexpr Type CREATE_SESSION4args =
    structure<uint64, uint32, uint32, channel_attrs4, channel_attrs4, uint32, array<callback_sec_parms4>>;
inline constexpr Type CREATE_SESSION4res =
    result<structure<sessionid4, uint32, uint32, channel_attrs4, channel_attrs4>>;

inline constexpr Type GET_DIR_DELEGATION4args =
    structure<boolean, noted_bitmap4, nfstime4, nfstime4, noted_bitmap4, noted_bitmap4>;
inline constexpr Type GET_DIR_DELEGATION4resok = structure<verifier4, stateid4, bitmap4, bitmap4, bitmap4>;
// GDD4_OK, GDD4_UNAVAIL
inline constexpr Type GET_DIR_DELEGATION4res_non_fatal = union_of<arm<0, GET_DIR_DELEGATION4resok>, arm<1, boolean>>;
inline constexpr Type GET_DIR_DELEGATION4res = result<GET_DIR_DELEGATION4res_non_fatal>;

// U1-6.2-02: gdia_maxcount and loga_maxcount limit bodies that have no other limit. With gdia_maxcount 0 the body is
// empty, but the other fields are present.
inline constexpr Type GETDEVICEINFO4args = structure<deviceid4, uint32, reply_count, noted_bitmap4>;
inline constexpr Type without_device_addr = structure<uint32, uint32, bitmap4>;
inline constexpr Type GETDEVICEINFO4resok =
    within_count<structure<device_addr4, bitmap4>, kBeyondDeviceinfo4, Bound::kCount, without_device_addr>;
inline constexpr Type GETDEVICEINFO4res = union_or<void_type, arm<0, GETDEVICEINFO4resok>, arm<kErrTooSmall, uint32>>;

inline constexpr Type GETDEVICELIST4args = structure<uint32, reply_count, uint64, verifier4>;
inline constexpr Type GETDEVICELIST4res =
    result<structure<uint64, verifier4, bounded<array<deviceid4>, Bound::kCount>, boolean>>;

inline constexpr Type newtime4 = optional<nfstime4>;
inline constexpr Type newoffset4 = optional<uint64>;
inline constexpr Type newsize4 = optional<uint64>;
inline constexpr Type LAYOUTCOMMIT4args =
    structure<uint64, uint64, boolean, stateid4, newoffset4, newtime4, layoutupdate4>;
inline constexpr Type LAYOUTCOMMIT4res = result<newsize4>;

inline constexpr Type LAYOUTGET4args =
    structure<boolean, uint32, uint32, uint64, uint64, uint64, stateid4, reply_count>;
inline constexpr Type layout4 = structure<uint64, uint64, uint32, layout_content4>;
inline constexpr Type layouts4 = within_count<array<layout4>, 4 + 28 * kLayouts, Bound::kAboutCount>;
inline constexpr Type LAYOUTGET4res =
    union_or<void_type, arm<0, structure<boolean, stateid4, layouts4>>, arm<kErrLayoutTryLater, boolean>>;

// LAYOUTRETURN4_FILE
inline constexpr Type layoutreturn4 = union_or<void_type, arm<1, structure<uint64, uint64, stateid4, opaque<>>>>;
inline constexpr Type LAYOUTRETURN4args = structure<boolean, uint32, uint32, layoutreturn4>;
inline constexpr Type LAYOUTRETURN4res = result<optional<stateid4>>;

inline constexpr Type SEQUENCE4args = structure<sessionid4, uint32, uint32, uint32, boolean>;
inline constexpr Type SEQUENCE4res = result<structure<sessionid4, uint32, uint32, uint32, uint32, uint32>>;

// Both digests are made with the hash that EXCHANGE_ID agreed on.
inline constexpr Type SET_SSV4args = structure<opaque<>, noted<opaque<>, Note::kLength>>;
inline constexpr Type SET_SSV4res = result<bounded<opaque<>, Bound::kLength>>;

inline constexpr Type TEST_STATEID4args = noted<array<stateid4>, Note::kCount>;
inline constexpr Type TEST_STATEID4res = result<bounded<array<nfsstat4>, Bound::kCount>>;

// CLAIM_PREVIOUS, CLAIM_FH, CLAIM_DELEG_PREV_FH
inline constexpr Type deleg_claim4 = union_of<arm<1, uint32>, arm<4>, arm<6>>;
inline constexpr Type WANT_DELEGATION4args = structure<uint32, deleg_claim4>;
inline constexpr Type WANT_DELEGATION4res = result<open_delegation4>;

using enum Runs;
inline constexpr auto kOperations = std::to_array<Operation>({
    operation(40, "BACKCHANNEL_CTL", kOnce, BACKCHANNEL_CTL4args, nfsstat4, 1),
    operation(41, "BIND_CONN_TO_SESSION", kOnce, BIND_CONN_TO_SESSION4args, BIND_CONN_TO_SESSION4res, 1),
    operation(42, "EXCHANGE_ID", kOnce, EXCHANGE_ID4args, EXCHANGE_ID4res, 1),
    operation(43, "CREATE_SESSION", kOnce, CREATE_SESSION4args, CREATE_SESSION4res, 1),
    operation(44, "DESTROY_SESSION", kOnce, sessionid4, nfsstat4, 1),
    operation(45, "FREE_STATEID", kOnce, stateid4, nfsstat4, 1),
    operation(46, "GET_DIR_DELEGATION", kOnce, GET_DIR_DELEGATION4args, GET_DIR_DELEGATION4res, 1),
    operation(47, "GETDEVICEINFO", kAgain, GETDEVICEINFO4args, GETDEVICEINFO4res, 1),
    operation(48, "GETDEVICELIST", kAgain, GETDEVICELIST4args, GETDEVICELIST4res, 1),
    operation(49, "LAYOUTCOMMIT", kOnce, LAYOUTCOMMIT4args, LAYOUTCOMMIT4res, 1),
    operation(50, "LAYOUTGET", kOnce, LAYOUTGET4args, LAYOUTGET4res, 1),
    operation(51, "LAYOUTRETURN", kOnce, LAYOUTRETURN4args, LAYOUTRETURN4res, 1),
    operation(52, "SECINFO_NO_NAME", kAgain, uint32, v4_0::SECINFO4res, 1),
    with_sequence(operation(53, "SEQUENCE", kOnce, SEQUENCE4args, SEQUENCE4res, 1)),
    operation(54, "SET_SSV", kOnce, SET_SSV4args, SET_SSV4res, 1),
    operation(55, "TEST_STATEID", kAgain, TEST_STATEID4args, TEST_STATEID4res, 1),
    operation(56, "WANT_DELEGATION", kOnce, WANT_DELEGATION4args, WANT_DELEGATION4res, 1),
    operation(57, "DESTROY_CLIENTID", kOnce, uint64, nfsstat4, 1),
    operation(58, "RECLAIM_COMPLETE", kOnce, boolean, nfsstat4, 1),
});

}  // namespace weft::nfsulb::v4_1
