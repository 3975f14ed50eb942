#include "nfsulb/nfs2_types.h"
#include "nfsulb/nfs3_types.h"
#include "nfsulb/schemas.h"

// NFSACL versions 2 and 3, as Solaris defined them and Linux implements them. There is no RFC. U1-5.2-02: nothing is
// eligible.
namespace weft::nfsulb {
namespace {

using namespace xdr;

// U1-5.2-04, -05: the protocol has no limit. Linux's limit is 1024 entries. A client's limit may be smaller
// (max_unbounded).
constexpr std::uint32_t kEntries = 1024;

// type, id, perm
constexpr Type aclent = opaque_fixed<3 * 4>;
// The number of entries, and the entries themselves if the Call asked for them.
constexpr Type secattr_half = structure<uint32, array<aclent, kNoLimit, kEntries>>;
constexpr Type secattr = structure<uint32, secattr_half, secattr_half>;

constexpr Type GETACL2args = structure<fhandle, uint32>;
constexpr Type SETACL2args = structure<fhandle, secattr>;
constexpr Type ACCESS2args = structure<fhandle, uint32>;
constexpr Type GETXATTRDIR2args = structure<fhandle, boolean>;
constexpr Type GETACL2res = result<structure<fattr, secattr>>;
constexpr Type ACCESS2res = result<structure<fattr, uint32>>;
constexpr Type GETXATTRDIR2res = result<structure<fhandle, fattr>>;

constexpr Type GETACL3args = structure<nfs_fh3, uint32>;
constexpr Type SETACL3args = structure<nfs_fh3, secattr>;
constexpr Type GETXATTRDIR3args = structure<nfs_fh3, boolean>;
constexpr Type GETACL3res = result<structure<post_op_attr, secattr>, post_op_attr>;
constexpr Type SETACL3res = structure<uint32, post_op_attr>;
constexpr Type GETXATTRDIR3res = result<structure<nfs_fh3, post_op_attr>, post_op_attr>;

using enum Runs;
constexpr Operation kAclProcedures2[] = {
    operation(0, "NULL", kAgain, void_type, void_type),
    with_retry(operation(1, "GETACL", kAgain, GETACL2args, GETACL2res)),  // U1-5.2-06
    operation(2, "SETACL", kOnce, SETACL2args, attrstat),
    operation(3, "GETATTR", kAgain, fhandle, attrstat),
    operation(4, "ACCESS", kAgain, ACCESS2args, ACCESS2res),
    operation(5, "GETXATTRDIR", kOnce, GETXATTRDIR2args, GETXATTRDIR2res),  // Solaris only
};
constexpr Operation kAclProcedures3[] = {
    operation(0, "NULL", kAgain, void_type, void_type),
    with_retry(operation(1, "GETACL", kAgain, GETACL3args, GETACL3res)),
    operation(2, "SETACL", kOnce, SETACL3args, SETACL3res),
    operation(3, "GETXATTRDIR", kOnce, GETXATTRDIR3args, GETXATTRDIR3res),  // Solaris only
};

}  // namespace

constexpr Program kNfsAcl2 = {kAclProcedures2};
constexpr Program kNfsAcl3 = {kAclProcedures3};

}  // namespace weft::nfsulb
