// NFS version 2, MOUNT versions 1 and 2, NLM versions 1 and 3 and NSM against rpcgen's encoders of Sun's descriptions.
#include "mount.h"
#include "nfs_prot.h"
#include "nlm_prot.h"
#include "sm_inter.h"
#include "tests/ulb_oracle/procedures.h"

namespace weft::ulb_oracle {
namespace {

const Words kWords = {.first = {}, .special = {5, 70}, .longest = 1000};

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

TEST(Nfs2Oracle, WhatIsEligible) {
  RecordProperty("proves", "U1-4-01 U1-4-02 U1-4-03 U1-4-04");
  ProcedureTester nfs2(100003, 2, kWords);
  auto readlink = simple(5, &xdr_nfs_fh, &xdr_readlinkres);
  readlink.res_item = [](readlinkres& res) -> std::optional<Item> {
    if (res.status != NFS_OK) return std::nullopt;
    return item_of_text(res.readlinkres_u.data);
  };
  nfs2.check(readlink);
  auto read = simple(6, &xdr_readargs, &xdr_readres);
  read.res_item = [](readres& res) -> std::optional<Item> {
    if (res.status != NFS_OK) return std::nullopt;
    return Item{res.readres_u.reply.data.data_val, res.readres_u.reply.data.data_len};
  };
  read.fits = [](readargs& args, readres& res) {
    if (res.status == NFS_OK) args.count = res.readres_u.reply.data.data_len;
    return true;
  };
  nfs2.check(read);
  auto write = simple(8, &xdr_writeargs, &xdr_attrstat);
  write.arg_item = [](writeargs& args) { return Item{args.data.data_val, args.data.data_len}; };
  nfs2.check(write);
  auto symlink = simple(13, &xdr_symlinkargs, &xdr_nfsstat);
  symlink.arg_item = [](symlinkargs& args) { return item_of_text(args.to); };
  nfs2.check(symlink);
}

TEST(Nfs2Oracle, AllOthers) {
  RecordProperty("proves", "U1-3.1-07");
  ProcedureTester nfs2(100003, 2, kWords);
  for (const std::uint32_t number : {0u, 3u, 7u}) nfs2.check(simple(number, &xdr_nothing, &xdr_nothing));
  nfs2.check(simple(1, &xdr_nfs_fh, &xdr_attrstat));
  nfs2.check(simple(2, &xdr_sattrargs, &xdr_attrstat));
  nfs2.check(simple(4, &xdr_diropargs, &xdr_diropres));
  nfs2.check(simple(9, &xdr_createargs, &xdr_diropres));
  nfs2.check(simple(10, &xdr_diropargs, &xdr_nfsstat));
  nfs2.check(simple(11, &xdr_renameargs, &xdr_nfsstat));
  nfs2.check(simple(12, &xdr_linkargs, &xdr_nfsstat));
  nfs2.check(simple(14, &xdr_createargs, &xdr_diropres));
  nfs2.check(simple(15, &xdr_diropargs, &xdr_nfsstat));
  nfs2.check(simple(17, &xdr_nfs_fh, &xdr_statfsres));
  auto readdir = simple(16, &xdr_readdirargs, &xdr_readdirres);
  readdir.fits = [](readdirargs& args, readdirres& res) {
    args.count = 0;
    if (res.status != NFS_OK) return true;
    // The entries: without the list's end and eof.
    args.count = static_cast<u_int>(encoded_len(&xdr_dirlist, res.readdirres_u.reply) - 8);
    return true;
  };
  nfs2.check(readdir);
}

TEST(Mount1Oracle, AllProcedures) {
  RecordProperty("proves", "U1-5.1-02");
  for (const std::uint32_t version : {1u, 2u}) {
    ProcedureTester mount(100005, version, kWords);
    mount.check(simple(0, &xdr_nothing, &xdr_nothing));
    mount.check(simple(1, &xdr_dirpath, &xdr_fhstatus));
    mount.check(simple(2, &xdr_nothing, &xdr_mountlist));
    mount.check(simple(3, &xdr_dirpath, &xdr_nothing));
    mount.check(simple(4, &xdr_nothing, &xdr_nothing));
    mount.check(simple(5, &xdr_nothing, &xdr_exports));
    mount.check(simple(6, &xdr_nothing, &xdr_exports));
  }
}

// The cookie of the Call comes back.
template <typename ArgsType, typename ResType>
auto with_cookie(std::uint32_t number, Proc<ArgsType> args, Proc<ResType> res) {
  auto procedure = simple(number, args, res);
  procedure.fits = [](ArgsType& call, ResType& reply) { return reply.cookie.n_len <= call.cookie.n_len; };
  return procedure;
}

TEST(Nlm1Oracle, AllProcedures) {
  RecordProperty("proves", "U1-5.1-02");
  for (const std::uint32_t version : {1u, 3u}) {
    ProcedureTester nlm(100021, version, kWords);
    nlm.check(simple(0, &xdr_nothing, &xdr_nothing));
    nlm.check(with_cookie(1, &xdr_nlm_testargs, &xdr_nlm_testres));
    nlm.check(with_cookie(2, &xdr_nlm_lockargs, &xdr_nlm_res));
    nlm.check(with_cookie(3, &xdr_nlm_cancargs, &xdr_nlm_res));
    nlm.check(with_cookie(4, &xdr_nlm_unlockargs, &xdr_nlm_res));
    nlm.check(with_cookie(5, &xdr_nlm_testargs, &xdr_nlm_res));
    nlm.check(simple(6, &xdr_nlm_testargs, &xdr_nothing));
    nlm.check(simple(7, &xdr_nlm_lockargs, &xdr_nothing));
    nlm.check(simple(8, &xdr_nlm_cancargs, &xdr_nothing));
    nlm.check(simple(9, &xdr_nlm_unlockargs, &xdr_nothing));
    nlm.check(simple(10, &xdr_nlm_testargs, &xdr_nothing));
    nlm.check(simple(11, &xdr_nlm_testres, &xdr_nothing));
    for (const std::uint32_t number : {12u, 13u, 14u, 15u}) nlm.check(simple(number, &xdr_nlm_res, &xdr_nothing));
    if (version == 1) continue;
    nlm.check(with_cookie(20, &xdr_nlm_shareargs, &xdr_nlm_shareres));
    nlm.check(with_cookie(21, &xdr_nlm_shareargs, &xdr_nlm_shareres));
    nlm.check(with_cookie(22, &xdr_nlm_lockargs, &xdr_nlm_res));
    nlm.check(simple(23, &xdr_nlm_notify, &xdr_nothing));
  }
}

TEST(NsmOracle, AllProcedures) {
  RecordProperty("proves", "U1-5.1-02");
  ProcedureTester nsm(100024, 1, kWords);
  nsm.check(simple(0, &xdr_nothing, &xdr_nothing));
  nsm.check(simple(1, &xdr_sm_name, &xdr_sm_stat_res));
  nsm.check(simple(2, &xdr_mon, &xdr_sm_stat_res));
  nsm.check(simple(3, &xdr_mon_id, &xdr_sm_stat));
  nsm.check(simple(4, &xdr_my_id, &xdr_sm_stat));
  nsm.check(simple(5, &xdr_nothing, &xdr_nothing));
}

}  // namespace
}  // namespace weft::ulb_oracle
