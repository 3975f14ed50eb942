#pragma once

#include <array>

#include "nfsulb/nfs4_types.h"
#include "nfsulb/server_habits.h"

// The operations of NFSv4.0 (RFC 7531), in the form that RFC 7863 gives them: later minor versions only add arms to
// OPEN. Eligible (RFC 8267 section 6.1: U1-6.1-01 to U1-6.1-05): the data of WRITE and READ, linkdata of CREATE, the
// link of READLINK.
namespace weft::nfsulb::v4_0 {

using namespace xdr;

inline constexpr std::uint32_t kFlavors = 12;  // of SECINFO, that a client expects at most
inline constexpr std::uint32_t kMaxOid = 32;   // octets of a mechanism's OID; Kerberos' has 11
inline constexpr std::uint32_t kErrDenied = 10010;
inline constexpr std::uint32_t kErrClidInuse = 10017;
inline constexpr std::uint32_t kRpcsecGss = 6;

inline constexpr Type seqid4 = uint32;
// The attributes that CREATE, OPEN and SETATTR have set, out of the attributes in the Call.
inline constexpr Type attrset4 = bitmap4;

inline constexpr Type ACCESS4args = uint32;
inline constexpr Type ACCESS4res = result<structure<uint32, uint32>>;

inline constexpr Type CLOSE4args = structure<seqid4, stateid4>;
inline constexpr Type CLOSE4res = result<stateid4>;

inline constexpr Type COMMIT4args = structure<uint64, uint32>;
inline constexpr Type COMMIT4res = result<verifier4>;

// NF4BLK, NF4CHR, NF4LNK
inline constexpr Type createtype4 = union_or<void_type, arm<3, specdata4>, arm<4, specdata4>, arm<5, eligible<>>>;
inline constexpr Type CREATE4args = structure<createtype4, component4, fattr4>;
inline constexpr Type CREATE4res = result<structure<change_info4, attrset4>>;

inline constexpr Type GETATTR4args = attr_request4;
inline constexpr Type GETATTR4res = result<requested_fattr4>;

inline constexpr Type GETFH4res = result<nfs_fh4>;

inline constexpr Type LINK4res = result<change_info4>;

inline constexpr Type open_to_lock_owner4 = structure<seqid4, stateid4, seqid4, state_owner4>;
inline constexpr Type exist_lock_owner4 = structure<stateid4, seqid4>;
inline constexpr Type locker4 = union_of<arm<0, exist_lock_owner4>, arm<1, open_to_lock_owner4>>;
inline constexpr Type LOCK4args = structure<uint32, boolean, uint64, uint64, locker4>;
inline constexpr Type LOCK4denied = structure<uint64, uint64, uint32, state_owner4>;
inline constexpr Type LOCK4res = union_or<void_type, arm<0, stateid4>, arm<kErrDenied, LOCK4denied>>;
inline constexpr Type LOCKT4args = structure<uint32, uint64, uint64, state_owner4>;
inline constexpr Type LOCKT4res = union_or<void_type, arm<kErrDenied, LOCK4denied>>;
inline constexpr Type LOCKU4args = structure<uint32, seqid4, stateid4, uint64, uint64>;
inline constexpr Type LOCKU4res = result<stateid4>;

// UNCHECKED4, GUARDED4, EXCLUSIVE4, EXCLUSIVE4_1
inline constexpr Type createhow4 =
    union_of<arm<0, fattr4>, arm<1, fattr4>, arm<2, verifier4>, arm<3, structure<verifier4, fattr4>>>;
inline constexpr Type openflag4 = union_or<void_type, arm<1, createhow4>>;
// CLAIM_NULL, _PREVIOUS, _DELEGATE_CUR, _DELEGATE_PREV; of 4.1: _FH, _DELEG_CUR_FH, _DELEG_PREV_FH
inline constexpr Type open_claim4 =
    union_of<arm<0, component4>, arm<1, uint32>, arm<2, structure<stateid4, component4>>, arm<3, component4>, arm<4>,
             arm<5, stateid4>, arm<6>>;
inline constexpr Type OPEN4args = structure<seqid4, uint32, uint32, state_owner4, openflag4, open_claim4>;
inline constexpr Type OPEN4res = result<structure<stateid4, change_info4, uint32, attrset4, open_delegation4>>;

inline constexpr Type OPEN_CONFIRM4args = structure<stateid4, seqid4>;
inline constexpr Type OPEN_DOWNGRADE4args = structure<stateid4, seqid4, uint32, uint32>;
inline constexpr Type OPEN_DOWNGRADE4res = result<stateid4>;

inline constexpr Type READ4args = structure<stateid4, uint64, reply_count>;
inline constexpr Type READ4res = result<structure<boolean, eligible<Bound::kCount>>>;

inline constexpr Type READDIR4args = structure<uint64, verifier4, uint32, reply_count, bitmap4>;
inline constexpr Type entry4 = structure<uint64, component4, fattr4>;
// U1-3-04: by the RFC, maxcount includes the whole resok.
inline constexpr Type READDIR4res = result<within_count<structure<verifier4, list<entry4>, boolean>, kBeyondReaddir4>>;

inline constexpr Type READLINK4res = result<eligible<Bound::kText>>;

inline constexpr Type RENAME4args = structure<component4, component4>;
inline constexpr Type RENAME4res = result<structure<change_info4, change_info4>>;

inline constexpr Type rpcsec_gss_info = structure<opaque<kNoLimit, kMaxOid>, uint32, uint32>;
inline constexpr Type secinfo4 = union_or<void_type, arm<kRpcsecGss, rpcsec_gss_info>>;
inline constexpr Type SECINFO4res = result<array<secinfo4, kNoLimit, kFlavors>>;

inline constexpr Type SETATTR4args = structure<stateid4, fattr4>;
inline constexpr Type SETATTR4res = structure<nfsstat4, attrset4>;

inline constexpr Type nfs_client_id4 = structure<verifier4, opaque<1024>>;
inline constexpr Type cb_client4 = structure<uint32, netaddr4>;
inline constexpr Type SETCLIENTID4args = structure<nfs_client_id4, cb_client4, uint32>;
inline constexpr Type SETCLIENTID4res =
    union_or<void_type, arm<0, structure<uint64, verifier4>>, arm<kErrClidInuse, netaddr4>>;
inline constexpr Type SETCLIENTID_CONFIRM4args = structure<uint64, verifier4>;

inline constexpr Type WRITE4args = structure<stateid4, uint64, uint32, eligible<>>;
inline constexpr Type WRITE4res = result<structure<uint32, uint32, verifier4>>;

using enum Runs;
inline constexpr auto kOperations = std::to_array<Operation>({
    operation(3, "ACCESS", kAgain, ACCESS4args, ACCESS4res),
    operation(4, "CLOSE", kOnce, CLOSE4args, CLOSE4res),
    operation(5, "COMMIT", kAgain, COMMIT4args, COMMIT4res),
    operation(6, "CREATE", kOnce, CREATE4args, CREATE4res),
    operation(7, "DELEGPURGE", kOnce, uint64, nfsstat4),
    operation(8, "DELEGRETURN", kOnce, stateid4, nfsstat4),
    with_retry(operation(9, "GETATTR", kAgain, GETATTR4args, GETATTR4res)),  // U1-6.2.1-03
    operation(10, "GETFH", kAgain, void_type, GETFH4res),
    operation(11, "LINK", kOnce, component4, LINK4res),
    operation(12, "LOCK", kOnce, LOCK4args, LOCK4res),
    operation(13, "LOCKT", kAgain, LOCKT4args, LOCKT4res),
    operation(14, "LOCKU", kOnce, LOCKU4args, LOCKU4res),
    operation(15, "LOOKUP", kAgain, component4, nfsstat4),
    operation(16, "LOOKUPP", kAgain, void_type, nfsstat4),
    operation(17, "NVERIFY", kAgain, fattr4, nfsstat4),
    operation(18, "OPEN", kOnce, OPEN4args, OPEN4res),
    operation(19, "OPENATTR", kOnce, boolean, nfsstat4),
    operation(20, "OPEN_CONFIRM", kOnce, OPEN_CONFIRM4args, result<stateid4>),
    operation(21, "OPEN_DOWNGRADE", kOnce, OPEN_DOWNGRADE4args, OPEN_DOWNGRADE4res),
    operation(22, "PUTFH", kAgain, nfs_fh4, nfsstat4),
    operation(23, "PUTPUBFH", kAgain, void_type, nfsstat4),
    operation(24, "PUTROOTFH", kAgain, void_type, nfsstat4),
    operation(25, "READ", kAgain, READ4args, READ4res),
    operation(26, "READDIR", kAgain, READDIR4args, READDIR4res),
    operation(27, "READLINK", kAgain, void_type, READLINK4res),
    operation(28, "REMOVE", kOnce, component4, result<change_info4>),
    operation(29, "RENAME", kOnce, RENAME4args, RENAME4res),
    operation(30, "RENEW", kAgain, uint64, nfsstat4),
    operation(31, "RESTOREFH", kAgain, void_type, nfsstat4),
    operation(32, "SAVEFH", kAgain, void_type, nfsstat4),
    operation(33, "SECINFO", kAgain, component4, SECINFO4res),
    operation(34, "SETATTR", kOnce, SETATTR4args, SETATTR4res),
    operation(35, "SETCLIENTID", kOnce, SETCLIENTID4args, SETCLIENTID4res),
    operation(36, "SETCLIENTID_CONFIRM", kOnce, SETCLIENTID_CONFIRM4args, nfsstat4),
    operation(37, "VERIFY", kAgain, fattr4, nfsstat4),
    operation(38, "WRITE", kOnce, WRITE4args, WRITE4res),
    operation(39, "RELEASE_LOCKOWNER", kOnce, state_owner4, nfsstat4),
});

}  // namespace weft::nfsulb::v4_0
