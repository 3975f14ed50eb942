#include "nfsulb/nfs3_types.h"
#include "nfsulb/schemas.h"
#include "nfsulb/server_habits.h"

// NFS version 3 (RFC 1813 section 3). Eligible: the data of WRITE and READ, the path text of SYMLINK and READLINK
// (RFC 8267 section 4: U1-4-01 to U1-4-05).
namespace weft::nfsulb {
namespace {

using namespace xdr;

constexpr Type filename3 = string<>;
constexpr Type writeverf3 = opaque_fixed<8>;
constexpr Type cookieverf3 = opaque_fixed<8>;
constexpr Type createverf3 = opaque_fixed<8>;
constexpr Type specdata3 = structure<uint32, uint32>;
constexpr Type post_op_fh3 = optional<nfs_fh3>;

constexpr Type wcc_attr = structure<uint64, nfstime3, nfstime3>;
constexpr Type pre_op_attr = optional<wcc_attr>;
constexpr Type wcc_data = structure<pre_op_attr, post_op_attr>;

// set_atime, set_mtime: DONT_CHANGE, SET_TO_SERVER_TIME, SET_TO_CLIENT_TIME.
constexpr Type set_time = union_of<arm<0>, arm<1>, arm<2, nfstime3>>;
constexpr Type sattr3 =
    structure<optional<uint32>, optional<uint32>, optional<uint32>, optional<uint64>, set_time, set_time>;
constexpr Type sattrguard3 = optional<nfstime3>;
constexpr Type diropargs3 = structure<nfs_fh3, filename3>;

// createmode3: UNCHECKED, GUARDED, EXCLUSIVE.
constexpr Type createhow3 = union_of<arm<0, sattr3>, arm<1, sattr3>, arm<2, createverf3>>;
// ftype3: NF3REG, NF3DIR, NF3BLK, NF3CHR, NF3LNK, NF3SOCK, NF3FIFO.
constexpr Type devicedata3 = structure<sattr3, specdata3>;
constexpr Type mknoddata3 =
    union_of<arm<1>, arm<2>, arm<3, devicedata3>, arm<4, devicedata3>, arm<5>, arm<6, sattr3>, arm<7, sattr3>>;

constexpr Type SETATTR3args = structure<nfs_fh3, sattr3, sattrguard3>;
constexpr Type ACCESS3args = structure<nfs_fh3, uint32>;
constexpr Type READ3args = structure<nfs_fh3, uint64, reply_count>;
constexpr Type WRITE3args = structure<nfs_fh3, uint64, uint32, uint32, eligible<>>;
constexpr Type CREATE3args = structure<diropargs3, createhow3>;
constexpr Type MKDIR3args = structure<diropargs3, sattr3>;
constexpr Type SYMLINK3args = structure<diropargs3, sattr3, eligible<>>;
constexpr Type MKNOD3args = structure<diropargs3, mknoddata3>;
constexpr Type RENAME3args = structure<diropargs3, diropargs3>;
constexpr Type LINK3args = structure<nfs_fh3, diropargs3>;
constexpr Type READDIR3args = structure<nfs_fh3, uint64, cookieverf3, reply_count>;
constexpr Type READDIRPLUS3args = structure<nfs_fh3, uint64, cookieverf3, uint32, reply_count>;
constexpr Type COMMIT3args = structure<nfs_fh3, uint64, uint32>;

constexpr Type GETATTR3res = result<fattr3>;
constexpr Type SETATTR3res = result<wcc_data, wcc_data>;
constexpr Type LOOKUP3res = result<structure<nfs_fh3, post_op_attr, post_op_attr>, post_op_attr>;
constexpr Type ACCESS3res = result<structure<post_op_attr, uint32>, post_op_attr>;
constexpr Type READLINK3res = result<structure<post_op_attr, eligible<Bound::kText>>, post_op_attr>;
constexpr Type READ3res = result<structure<post_op_attr, uint32, boolean, eligible<Bound::kCount>>, post_op_attr>;
constexpr Type WRITE3res = result<structure<wcc_data, uint32, uint32, writeverf3>, wcc_data>;
// CREATE, MKDIR, SYMLINK, MKNOD
constexpr Type CREATE3res = result<structure<post_op_fh3, post_op_attr, wcc_data>, wcc_data>;
constexpr Type RENAME3res = result<structure<wcc_data, wcc_data>, structure<wcc_data, wcc_data>>;
constexpr Type LINK3res = result<structure<post_op_attr, wcc_data>, structure<post_op_attr, wcc_data>>;
constexpr Type entry3 = structure<uint64, filename3, uint64>;
constexpr Type entryplus3 = structure<uint64, filename3, uint64, post_op_attr, post_op_fh3>;
// U1-3-04: by the RFC, the Call's count and maxcount include the whole resok.
template <const Type& kEntry>
constexpr Type READDIR3resok = structure<post_op_attr, cookieverf3, list<kEntry>, boolean>;
constexpr Type READDIR3res = result<within_count<READDIR3resok<entry3>, kBeyondReaddir3>, post_op_attr>;
constexpr Type READDIRPLUS3res = result<within_count<READDIR3resok<entryplus3>, kBeyondReaddir3>, post_op_attr>;
constexpr Type FSSTAT3res = result<structure<post_op_attr, opaque_fixed<6 * 8>, uint32>, post_op_attr>;
constexpr Type FSINFO3res =
    result<structure<post_op_attr, opaque_fixed<7 * 4>, uint64, nfstime3, uint32>, post_op_attr>;
constexpr Type PATHCONF3res = result<structure<post_op_attr, opaque_fixed<6 * 4>>, post_op_attr>;
constexpr Type COMMIT3res = result<structure<wcc_data, writeverf3>, wcc_data>;

using enum Runs;
constexpr Operation kNfs3Procedures[] = {
    operation(0, "NULL", kAgain, void_type, void_type),
    operation(1, "GETATTR", kAgain, nfs_fh3, GETATTR3res),
    operation(2, "SETATTR", kOnce, SETATTR3args, SETATTR3res),
    operation(3, "LOOKUP", kAgain, diropargs3, LOOKUP3res),
    operation(4, "ACCESS", kAgain, ACCESS3args, ACCESS3res),
    operation(5, "READLINK", kAgain, nfs_fh3, READLINK3res),
    operation(6, "READ", kAgain, READ3args, READ3res),
    operation(7, "WRITE", kOnce, WRITE3args, WRITE3res),
    operation(8, "CREATE", kOnce, CREATE3args, CREATE3res),
    operation(9, "MKDIR", kOnce, MKDIR3args, CREATE3res),
    operation(10, "SYMLINK", kOnce, SYMLINK3args, CREATE3res),
    operation(11, "MKNOD", kOnce, MKNOD3args, CREATE3res),
    operation(12, "REMOVE", kOnce, diropargs3, SETATTR3res),
    operation(13, "RMDIR", kOnce, diropargs3, SETATTR3res),
    operation(14, "RENAME", kOnce, RENAME3args, RENAME3res),
    operation(15, "LINK", kOnce, LINK3args, LINK3res),
    operation(16, "READDIR", kAgain, READDIR3args, READDIR3res),
    operation(17, "READDIRPLUS", kAgain, READDIRPLUS3args, READDIRPLUS3res),
    operation(18, "FSSTAT", kAgain, nfs_fh3, FSSTAT3res),
    operation(19, "FSINFO", kAgain, nfs_fh3, FSINFO3res),
    operation(20, "PATHCONF", kAgain, nfs_fh3, PATHCONF3res),
    operation(21, "COMMIT", kAgain, COMMIT3args, COMMIT3res),
};

}  // namespace

constexpr Program kNfs3 = {kNfs3Procedures};

}  // namespace weft::nfsulb
