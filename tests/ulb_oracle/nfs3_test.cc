// NFS version 3, MOUNT version 3, NLM version 4 and NFSACL against rpcgen's encoders.
#include "nfs3.h"
#include "mount3.h"
#include "nfsacl.h"
#include "nlm4.h"
#include "tests/ulb_oracle/procedures.h"

namespace weft::ulb_oracle {
namespace {

const Words kWords = {.first = {}, .special = {5, 10004, 10006}};

// The RFC gives these unions a default, which the values that their enums have never reach.
bool is_real(const sattr3& sattr) {
  return sattr.atime.set_it <= SET_TO_CLIENT_TIME && sattr.mtime.set_it <= SET_TO_CLIENT_TIME;
}
bool is_real(const mknoddata3& what) {
  if (what.type < NF3REG || what.type > NF3FIFO) return false;
  if (what.type == NF3CHR || what.type == NF3BLK) return is_real(what.mknoddata3_u.device.dev_attributes);
  return what.type < NF3SOCK || is_real(what.mknoddata3_u.pipe_attributes);
}
bool is_real(const createhow3& how) {
  return how.mode == EXCLUSIVE || is_real(how.createhow3_u.obj_attributes);
}

std::optional<Item> item_of_text(char* text) {
  return Item{text, static_cast<std::uint32_t>(std::strlen(text))};
}

template <typename ArgsType, typename ResType>
Procedure<ArgsType, ResType> simple(std::uint32_t number, Proc<ArgsType> args, Proc<ResType> res) {
  Procedure<ArgsType, ResType> procedure;
  procedure.number = number;
  procedure.args_proc = args;
  procedure.res_proc = res;
  return procedure;
}

TEST(Nfs3Oracle, ReadAndWrite) {
  RecordProperty("proves", "U1-4-01 U1-4-03 U1-3.1-07");
  ProcedureTester nfs3(100003, 3, kWords);
  auto read = simple(6, &xdr_READ3args, &xdr_READ3res);
  read.res_item = [](READ3res& res) -> std::optional<Item> {
    if (res.status != NFS3_OK) return std::nullopt;
    return Item{res.READ3res_u.resok.data.data_val, res.READ3res_u.resok.data.data_len};
  };
  read.fits = [](READ3args& args, READ3res& res) {
    if (res.status == NFS3_OK) args.count = res.READ3res_u.resok.data.data_len;
    return true;
  };
  nfs3.check(read);
  auto write = simple(7, &xdr_WRITE3args, &xdr_WRITE3res);
  write.arg_item = [](WRITE3args& args) { return Item{args.data.data_val, args.data.data_len}; };
  nfs3.check(write);
}

TEST(Nfs3Oracle, Links) {
  RecordProperty("proves", "U1-4-02 U1-4-04");
  ProcedureTester nfs3(100003, 3, kWords);
  auto readlink = simple(5, &xdr_READLINK3args, &xdr_READLINK3res);
  readlink.res_item = [](READLINK3res& res) -> std::optional<Item> {
    if (res.status != NFS3_OK) return std::nullopt;
    return item_of_text(res.READLINK3res_u.resok.data);
  };
  nfs3.check(readlink);
  auto symlink = simple(10, &xdr_SYMLINK3args, &xdr_SYMLINK3res);
  symlink.arg_item = [](SYMLINK3args& args) { return item_of_text(args.symlink.symlink_data); };
  symlink.fits = [](SYMLINK3args& args, SYMLINK3res&) { return is_real(args.symlink.symlink_attributes); };
  nfs3.check(symlink);
}

TEST(Nfs3Oracle, ProceduresWithAttributes) {
  ProcedureTester nfs3(100003, 3, kWords);
  auto setattr = simple(2, &xdr_SETATTR3args, &xdr_SETATTR3res);
  setattr.fits = [](SETATTR3args& args, SETATTR3res&) { return is_real(args.new_attributes); };
  nfs3.check(setattr);
  auto create = simple(8, &xdr_CREATE3args, &xdr_CREATE3res);
  create.fits = [](CREATE3args& args, CREATE3res&) { return is_real(args.how); };
  nfs3.check(create);
  auto mkdir = simple(9, &xdr_MKDIR3args, &xdr_MKDIR3res);
  mkdir.fits = [](MKDIR3args& args, MKDIR3res&) { return is_real(args.attributes); };
  nfs3.check(mkdir);
  auto mknod = simple(11, &xdr_MKNOD3args, &xdr_MKNOD3res);
  mknod.fits = [](MKNOD3args& args, MKNOD3res&) { return is_real(args.what); };
  nfs3.check(mknod);
}

TEST(Nfs3Oracle, Directories) {
  RecordProperty("proves", "U1-3-04");
  ProcedureTester nfs3(100003, 3, kWords);
  auto readdir = simple(16, &xdr_READDIR3args, &xdr_READDIR3res);
  readdir.fits = [](READDIR3args& args, READDIR3res& res) {
    args.count = 0;
    if (res.status != NFS3_OK) return true;
    args.count = static_cast<count3>(encoded_len(&xdr_READDIR3resok, res.READDIR3res_u.resok));
    return true;
  };
  nfs3.check(readdir);
  auto readdirplus = simple(17, &xdr_READDIRPLUS3args, &xdr_READDIRPLUS3res);
  readdirplus.fits = [](READDIRPLUS3args& args, READDIRPLUS3res& res) {
    args.maxcount = 0;
    if (res.status != NFS3_OK) return true;
    args.maxcount = static_cast<count3>(encoded_len(&xdr_READDIRPLUS3resok, res.READDIRPLUS3res_u.resok));
    return true;
  };
  nfs3.check(readdirplus);
}

TEST(Nfs3Oracle, AllOthers) {
  RecordProperty("proves", "U1-3.1-07");
  ProcedureTester nfs3(100003, 3, kWords);
  nfs3.check(simple(0, &xdr_nothing, &xdr_nothing));
  nfs3.check(simple(1, &xdr_GETATTR3args, &xdr_GETATTR3res));
  nfs3.check(simple(3, &xdr_LOOKUP3args, &xdr_LOOKUP3res));
  nfs3.check(simple(4, &xdr_ACCESS3args, &xdr_ACCESS3res));
  nfs3.check(simple(12, &xdr_REMOVE3args, &xdr_REMOVE3res));
  nfs3.check(simple(13, &xdr_RMDIR3args, &xdr_RMDIR3res));
  nfs3.check(simple(14, &xdr_RENAME3args, &xdr_RENAME3res));
  nfs3.check(simple(15, &xdr_LINK3args, &xdr_LINK3res));
  nfs3.check(simple(18, &xdr_FSSTAT3args, &xdr_FSSTAT3res));
  nfs3.check(simple(19, &xdr_FSINFOargs, &xdr_FSINFO3res));
  nfs3.check(simple(20, &xdr_PATHCONF3args, &xdr_PATHCONF3res));
  nfs3.check(simple(21, &xdr_COMMIT3args, &xdr_COMMIT3res));
}

TEST(Mount3Oracle, AllProcedures) {
  RecordProperty("proves", "U1-5.1-02");
  ProcedureTester mount(100005, 3, kWords);
  auto mnt = simple(1, &xdr_dirpath, &xdr_mountres3);
  mnt.fits = [](dirpath&, mountres3& res) {
    return res.fhs_status != MNT3_OK || res.mountres3_u.mountinfo.auth_flavors.auth_flavors_len <= 12;
  };
  mount.check(mnt);
  mount.check(simple(0, &xdr_nothing, &xdr_nothing));
  mount.check(simple(2, &xdr_nothing, &xdr_mountlist));
  mount.check(simple(3, &xdr_dirpath, &xdr_nothing));
  mount.check(simple(4, &xdr_nothing, &xdr_nothing));
  mount.check(simple(5, &xdr_nothing, &xdr_exports));
}

// The cookie of the Call comes back.
template <typename ArgsType, typename ResType>
auto with_cookie(std::uint32_t number, Proc<ArgsType> args, Proc<ResType> res) {
  auto procedure = simple(number, args, res);
  procedure.fits = [](ArgsType& call, ResType& reply) { return reply.cookie.netobj4_len <= call.cookie.netobj4_len; };
  return procedure;
}

TEST(Nlm4Oracle, AllProcedures) {
  RecordProperty("proves", "U1-5.1-02");
  ProcedureTester nlm(100021, 4, kWords);
  nlm.check(simple(0, &xdr_nothing, &xdr_nothing));
  nlm.check(with_cookie(1, &xdr_nlm4_testargs, &xdr_nlm4_testres));
  nlm.check(with_cookie(2, &xdr_nlm4_lockargs, &xdr_nlm4_res));
  nlm.check(with_cookie(3, &xdr_nlm4_cancargs, &xdr_nlm4_res));
  nlm.check(with_cookie(4, &xdr_nlm4_unlockargs, &xdr_nlm4_res));
  nlm.check(with_cookie(5, &xdr_nlm4_testargs, &xdr_nlm4_res));
  nlm.check(simple(6, &xdr_nlm4_testargs, &xdr_nothing));
  nlm.check(simple(7, &xdr_nlm4_lockargs, &xdr_nothing));
  nlm.check(simple(8, &xdr_nlm4_cancargs, &xdr_nothing));
  nlm.check(simple(9, &xdr_nlm4_unlockargs, &xdr_nothing));
  nlm.check(simple(10, &xdr_nlm4_testargs, &xdr_nothing));
  nlm.check(simple(11, &xdr_nlm4_testres, &xdr_nothing));
  for (const std::uint32_t number : {12u, 13u, 14u, 15u}) nlm.check(simple(number, &xdr_nlm4_res, &xdr_nothing));
  nlm.check(with_cookie(20, &xdr_nlm4_shareargs, &xdr_nlm4_shareres));
  nlm.check(with_cookie(21, &xdr_nlm4_shareargs, &xdr_nlm4_shareres));
  nlm.check(with_cookie(22, &xdr_nlm4_lockargs, &xdr_nlm4_res));
  nlm.check(simple(23, &xdr_nlm4_notify, &xdr_nothing));
}

bool is_usual(const secattr& acl) {
  return acl.aclents.aclents_len <= 1024 && acl.dfaclents.dfaclents_len <= 1024;
}

TEST(NfsAclOracle, AllProcedures) {
  RecordProperty("proves", "U1-5.2-02");
  ProcedureTester acl2(100227, 2, kWords);
  auto getacl2 = simple(1, &xdr_GETACL2args, &xdr_GETACL2res);
  getacl2.fits = [](GETACL2args&, GETACL2res& res) { return res.status != 0 || is_usual(res.GETACL2res_u.resok.acl); };
  acl2.check(getacl2);
  acl2.check(simple(2, &xdr_SETACL2args, &xdr_acl_attrstat2));
  acl2.check(simple(4, &xdr_GETACL2args, &xdr_ACCESS2res));
  acl2.check(simple(5, &xdr_GETXATTRDIR2args, &xdr_GETXATTRDIR2res));
  ProcedureTester acl3(100227, 3, kWords);
  auto getacl3 = simple(1, &xdr_GETACL3args, &xdr_GETACL3res);
  getacl3.fits = [](GETACL3args&, GETACL3res& res) { return res.status != 0 || is_usual(res.GETACL3res_u.resok.acl); };
  acl3.check(getacl3);
  acl3.check(simple(2, &xdr_SETACL3args, &xdr_SETACL3res));
  acl3.check(simple(3, &xdr_GETXATTRDIR3args, &xdr_GETXATTRDIR3res));
}

}  // namespace
}  // namespace weft::ulb_oracle
