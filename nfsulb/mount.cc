#include "nfsulb/nfs2_types.h"
#include "nfsulb/nfs3_types.h"
#include "nfsulb/schemas.h"

// MOUNT versions 1 and 2 (RFC 1094 appendix A) and 3 (RFC 1813 appendix I). U1-5.1-02: nothing is eligible.
namespace weft::nfsulb {
namespace {

using namespace xdr;

constexpr std::uint32_t kFlavors = 12;  // that a client expects at most

constexpr Type dirpath = string<1024>;
constexpr Type name = string<255>;

constexpr Type fhstatus = result<fhandle>;
constexpr Type mountlist = list<structure<name, dirpath>>;
constexpr Type groups = list<name>;
constexpr Type exports = list<structure<dirpath, groups>>;
// link_max; max_canon, max_input, name_max, path_max, pipe_buf; vdisable and an octet; two masks
constexpr Type ppathcnf = opaque_fixed<4 + 5 * 4 + 2 * 4 + 2 * 4>;
constexpr Type mountres3 = result<structure<nfs_fh3, array<uint32, kNoLimit, kFlavors>>>;

using enum Runs;
constexpr Operation kMountProcedures1[] = {
    operation(0, "NULL", kAgain, void_type, void_type),     //
    operation(1, "MNT", kAgain, dirpath, fhstatus),         //
    operation(2, "DUMP", kAgain, void_type, mountlist),     //
    operation(3, "UMNT", kAgain, dirpath, void_type),       //
    operation(4, "UMNTALL", kAgain, void_type, void_type),  //
    operation(5, "EXPORT", kAgain, void_type, exports),     //
    operation(6, "EXPORTALL", kAgain, void_type, exports),  // Sun's mount.x
};
constexpr Operation kMountProcedures2[] = {
    kMountProcedures1[0], kMountProcedures1[1],
    kMountProcedures1[2], kMountProcedures1[3],
    kMountProcedures1[4], kMountProcedures1[5],
    kMountProcedures1[6], operation(7, "PATHCONF", kAgain, dirpath, ppathcnf),  // in no RFC
};
constexpr Operation kMountProcedures3[] = {
    kMountProcedures1[0], operation(1, "MNT", kAgain, dirpath, mountres3),
    kMountProcedures1[2], kMountProcedures1[3],
    kMountProcedures1[4], kMountProcedures1[5],
};

}  // namespace

constexpr Program kMount1 = {kMountProcedures1};
constexpr Program kMount2 = {kMountProcedures2};
constexpr Program kMount3 = {kMountProcedures3};

}  // namespace weft::nfsulb
