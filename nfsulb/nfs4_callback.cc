#include "nfsulb/nfs4_compound.h"
#include "nfsulb/schemas.h"

// The callback program of NFS version 4, all minor versions: CB_NULL and CB_COMPOUND (RFC 7863). U1-6.5.1-02,
// U1-6.5.2-03: nothing is eligible.
namespace weft::nfsulb {
namespace {

using namespace xdr;

constexpr Type CB_GETATTR4args = structure<nfs_fh4, attr_request4>;
constexpr Type CB_GETATTR4res = result<requested_fattr4>;
constexpr Type CB_RECALL4args = structure<stateid4, boolean, nfs_fh4>;

// LAYOUTRECALL4_FILE, _FSID, _ALL
constexpr Type layoutrecall_file4 = structure<nfs_fh4, uint64, uint64, stateid4>;
constexpr Type layoutrecall4 = union_of<arm<1, layoutrecall_file4>, arm<2, fsid4>, arm<3>>;
constexpr Type CB_LAYOUTRECALL4args = structure<uint32, uint32, boolean, layoutrecall4>;

constexpr Type notify4 = structure<bitmap4, opaque<>>;
constexpr Type CB_NOTIFY4args = structure<stateid4, nfs_fh4, array<notify4>>;
constexpr Type CB_PUSH_DELEG4args = structure<nfs_fh4, open_delegation4>;
constexpr Type CB_RECALL_ANY4args = structure<uint32, bitmap4>;

constexpr Type referring_call4 = structure<uint32, uint32>;
constexpr Type referring_call_list4 = structure<sessionid4, array<referring_call4>>;
constexpr Type CB_SEQUENCE4args = structure<sessionid4, uint32, uint32, uint32, boolean, array<referring_call_list4>>;
constexpr Type CB_SEQUENCE4res = result<structure<sessionid4, uint32, uint32, uint32, uint32>>;

constexpr Type CB_WANTS_CANCELLED4args = structure<boolean, boolean>;
constexpr Type CB_NOTIFY_LOCK4args = structure<nfs_fh4, state_owner4>;
constexpr Type CB_NOTIFY_DEVICEID4args = array<notify4>;

constexpr Type offload_info4 = union_or<uint64, arm<0, write_response4>>;
constexpr Type CB_OFFLOAD4args = structure<nfs_fh4, stateid4, offload_info4>;

using enum Runs;
constexpr Operation kCallbackOperations[] = {
    operation(3, "CB_GETATTR", kAgain, CB_GETATTR4args, CB_GETATTR4res),
    operation(4, "CB_RECALL", kOnce, CB_RECALL4args, nfsstat4),
    operation(5, "CB_LAYOUTRECALL", kOnce, CB_LAYOUTRECALL4args, nfsstat4, 1),
    operation(6, "CB_NOTIFY", kOnce, CB_NOTIFY4args, nfsstat4, 1),
    operation(7, "CB_PUSH_DELEG", kOnce, CB_PUSH_DELEG4args, nfsstat4, 1),
    operation(8, "CB_RECALL_ANY", kOnce, CB_RECALL_ANY4args, nfsstat4, 1),
    operation(9, "CB_RECALLABLE_OBJ_AVAIL", kOnce, CB_RECALL_ANY4args, nfsstat4, 1),
    operation(10, "CB_RECALL_SLOT", kOnce, uint32, nfsstat4, 1),
    with_sequence(operation(11, "CB_SEQUENCE", kOnce, CB_SEQUENCE4args, CB_SEQUENCE4res, 1)),
    operation(12, "CB_WANTS_CANCELLED", kOnce, CB_WANTS_CANCELLED4args, nfsstat4, 1),
    operation(13, "CB_NOTIFY_LOCK", kOnce, CB_NOTIFY_LOCK4args, nfsstat4, 1),
    operation(14, "CB_NOTIFY_DEVICEID", kOnce, CB_NOTIFY_DEVICEID4args, nfsstat4, 1),
    operation(15, "CB_OFFLOAD", kOnce, CB_OFFLOAD4args, nfsstat4, 2),
    operation(kIllegal, "CB_ILLEGAL", kAgain, void_type, nfsstat4),
};
constexpr Type nfs_cb_ops = operations_of(kCallbackOperations);

constexpr Type CB_COMPOUND4args = structure<compound_tag, minorversion, uint32, nfs_cb_ops>;
constexpr Type CB_COMPOUND4res = structure<nfsstat4, same_tag, nfs_cb_ops>;

constexpr Operation kCallbackProcedures[] = {
    operation(0, "CB_NULL", kAgain, void_type, void_type),
    operation(1, "CB_COMPOUND", kAgain, CB_COMPOUND4args, CB_COMPOUND4res),
};

}  // namespace

constexpr Program kNfs4Callback = {kCallbackProcedures};

}  // namespace weft::nfsulb
