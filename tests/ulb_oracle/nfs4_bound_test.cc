// The bounds of COMPOUND Replies against possible Replies. For every operation a Call and a Reply are made up apart
// from each other. Then the Call is changed so that it asks for the contents of the Reply.
#include <gtest/gtest.h>

#include <iterator>

#include "tests/ulb_oracle/nfs4_values.h"

namespace weft::ulb_oracle {
namespace {

constexpr std::size_t kDraws = 600;  // for each operation
constexpr std::uint32_t kAllWords = 3;

// Whether a server would return this bitmap: the words of the Call, or as many as there are defined bits for.
bool is_usual(const bitmap4& results, const bitmap4& call) {
  return results.bitmap4_len <= std::max(call.bitmap4_len, kAllWords);
}
bool is_usual(const bitmap4& results) {
  return results.bitmap4_len <= kAllWords;
}

bool fit_secinfo(SECINFO4res& res) {
  if (res.status != NFS4_OK) return true;
  const SECINFO4resok& flavors = res.SECINFO4res_u.resok4;
  if (flavors.SECINFO4resok_len > 12) return false;
  return std::all_of(flavors.SECINFO4resok_val, flavors.SECINFO4resok_val + flavors.SECINFO4resok_len,
                     [](const secinfo4& each) {
                       return each.flavor != RPCSEC_GSS || each.secinfo4_u.flavor_info.oid.sec_oid4_len <= 32;
                     });
}

bool fit_exchange_id(EXCHANGE_ID4res& res) {
  if (res.eir_status != NFS4_OK) return true;
  const state_protect4_r& protect = res.EXCHANGE_ID4res_u.eir_resok4.eir_state_protect;
  if (protect.spr_how == SP4_NONE) return true;
  const bool is_ssv = protect.spr_how == SP4_SSV;
  const state_protect_ops4& ops =
      is_ssv ? protect.state_protect4_r_u.spr_ssv_info.spi_ops : protect.state_protect4_r_u.spr_mach_ops;
  if (!is_usual(ops.spo_must_enforce) || !is_usual(ops.spo_must_allow)) return false;
  const auto& handles = protect.state_protect4_r_u.spr_ssv_info.spi_handles;
  if (!is_ssv) return true;
  return handles.spi_handles_len <= 16 &&
         std::all_of(handles.spi_handles_val, handles.spi_handles_val + handles.spi_handles_len,
                     [](const gsshandle4_t& handle) { return handle.gsshandle4_t_len <= 32; });
}

bool fit_get_dir_delegation(const GET_DIR_DELEGATION4args& args, const GET_DIR_DELEGATION4res& res) {
  if (res.gddr_status != NFS4_OK) return true;
  const auto& non_fatal = res.GET_DIR_DELEGATION4res_u.gddr_res_non_fatal4;
  if (non_fatal.gddrnf_status != GDD4_OK) return true;
  const auto& ok = non_fatal.GET_DIR_DELEGATION4res_non_fatal_u.gddrnf_resok4;
  return is_usual(ok.gddr_notification, args.gdda_notification_types) &&
         is_usual(ok.gddr_child_attributes, args.gdda_child_attributes) &&
         is_usual(ok.gddr_dir_attributes, args.gdda_dir_attributes);
}

bool fit_layoutget(LAYOUTGET4args& args, const LAYOUTGET4res& res) {
  args.loga_maxcount = 0;
  if (res.logr_status != NFS4_OK) return true;
  const auto& layouts = res.LAYOUTGET4res_u.logr_resok4.logr_layout;
  for (u_int i = 0; i < layouts.logr_layout_len; ++i) {
    args.loga_maxcount += (layouts.logr_layout_val[i].lo_content.loc_body.loc_body_len + 3) / 4 * 4;
  }
  return layouts.logr_layout_len <= 16;
}

bool fit_read_plus(READ_PLUS4args& args, const READ_PLUS4res& res) {
  args.rpa_count = 0;
  if (res.rp_status != NFS4_OK) return true;
  const auto& contents = res.READ_PLUS4res_u.rp_resok4.rpr_contents;
  for (u_int i = 0; i < contents.rpr_contents_len; ++i) {
    const read_plus_content& each = contents.rpr_contents_val[i];
    if (each.rpc_content == NFS4_CONTENT_DATA) {
      args.rpa_count += each.read_plus_content_u.rpc_data.d_data.d_data_len;
    }
  }
  return contents.rpr_contents_len <= 64;
}

// The words of the attributes that an OPEN wants to set.
bool fit_open(const OPEN4args&, const OPEN4res& res) {
  return res.status != NFS4_OK || is_usual(res.OPEN4res_u.resok4.attrset);
}

void fit_maxcount(nfs_argop4& call, nfs_resop4& reply) {
  if (call.argop == OP_READDIR && reply.nfs_resop4_u.opreaddir.status == NFS4_OK) {
    auto& resok = reply.nfs_resop4_u.opreaddir.READDIR4res_u.resok4;
    call.nfs_argop4_u.opreaddir.maxcount = static_cast<count4>(encoded_len(&xdr_READDIR4resok, resok));
  }
  if (call.argop == OP_GETDEVICEINFO && reply.nfs_resop4_u.opgetdeviceinfo.gdir_status == NFS4_OK) {
    auto& resok = reply.nfs_resop4_u.opgetdeviceinfo.GETDEVICEINFO4res_u.gdir_resok4;
    call.nfs_argop4_u.opgetdeviceinfo.gdia_maxcount = static_cast<count4>(encoded_len(&xdr_GETDEVICEINFO4resok, resok));
  }
  if (call.argop == OP_READ && reply.nfs_resop4_u.opread.status == NFS4_OK) {
    call.nfs_argop4_u.opread.count = reply.nfs_resop4_u.opread.READ4res_u.resok4.data.data_len;
  }
  if (call.argop == OP_GETDEVICELIST && reply.nfs_resop4_u.opgetdevicelist.gdlr_status == NFS4_OK) {
    const auto& resok = reply.nfs_resop4_u.opgetdevicelist.GETDEVICELIST4res_u.gdlr_resok4;
    call.nfs_argop4_u.opgetdevicelist.gdla_maxdevices = resok.gdlr_deviceid_list.gdlr_deviceid_list_len;
  }
}

// fits: whether the Call can have this Reply, within the sizes that a client assumes where there is no limit.
bool fits(nfs_argop4& call, nfs_resop4& reply) {
  fit_maxcount(call, reply);
  auto& args = call.nfs_argop4_u;
  auto& res = reply.nfs_resop4_u;
  switch (call.argop) {
    case OP_GETATTR: return res.opgetattr.status != NFS4_OK;  // below
    case OP_CREATE:
      return res.opcreate.status != NFS4_OK ||
             is_usual(res.opcreate.CREATE4res_u.resok4.attrset, args.opcreate.createattrs.attrmask);
    case OP_OPEN: return fit_open(args.opopen, res.opopen);
    case OP_SETATTR: return is_usual(res.opsetattr.attrsset, args.opsetattr.obj_attributes.attrmask);
    case OP_SECINFO: return fit_secinfo(res.opsecinfo);
    case OP_SECINFO_NO_NAME: return fit_secinfo(res.opsecinfo_no_name);
    case OP_EXCHANGE_ID: return fit_exchange_id(res.opexchange_id);
    case OP_GET_DIR_DELEGATION: return fit_get_dir_delegation(args.opget_dir_delegation, res.opget_dir_delegation);
    case OP_GETDEVICEINFO: return true;
    case OP_LAYOUTGET: return fit_layoutget(args.oplayoutget, res.oplayoutget);
    case OP_SET_SSV:
      return res.opset_ssv.ssr_status != NFS4_OK || res.opset_ssv.SET_SSV4res_u.ssr_resok4.ssr_digest.ssr_digest_len <=
                                                        args.opset_ssv.ssa_digest.ssa_digest_len;
    case OP_TEST_STATEID:
      return res.optest_stateid.tsr_status != NFS4_OK ||
             res.optest_stateid.TEST_STATEID4res_u.tsr_resok4.tsr_status_codes.tsr_status_codes_len <=
                 args.optest_stateid.ts_stateids.ts_stateids_len;
    case OP_COPY_NOTIFY:
      return res.opcopy_notify.cnr_status != NFS4_OK ||
             res.opcopy_notify.COPY_NOTIFY4res_u.resok4.cnr_source_server.cnr_source_server_len <= 8;
    case OP_IO_ADVISE:
      return res.opio_advise.ior_status != NFS4_OK ||
             is_usual(res.opio_advise.IO_ADVISE4res_u.resok4.ior_hints, args.opio_advise.iaa_hints);
    case OP_READ_PLUS: return fit_read_plus(args.opread_plus, res.opread_plus);
    default: return true;
  }
}

TEST(Nfs4Oracle, NoReplyIsLargerThanItsBound) {
  RecordProperty("proves", "U1-3-04 U1-3.1-07");
  for (std::uint32_t op = OP_ACCESS; op <= kLastOp; ++op) {
    std::size_t num_pairs = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      SCOPED_TRACE(testing::Message() << "operation " << op << " seed " << seed() << " draw " << i);
      Args args(&xdr_nfs_argop4);
      Results results(&xdr_nfs_resop4);
      if (!args.draw(seed() + i, words(op)) || !results.draw(seed() + i + 1, words(op))) continue;
      if (!fits(args.get(), results.get())) continue;
      ++num_pairs;
      OutStream call, reply;
      std::vector<nfs_argop4> call_ops = {args.get()};
      std::vector<nfs_resop4> reply_ops = {results.get()};
      encode_call(call, 2, call_ops);
      encode_reply(reply, reply_ops);
      expect_bound(nfs4(), kCompound, call.octets(), reply.octets());
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(num_pairs, 15u) << op;
  }
}

// An attribute's value, as octets.
using DrawAttribute = Octets (*)(std::uint64_t seed);
template <typename T, Proc<T> kProc>
Octets draw_attribute(std::uint64_t seed) {
  Value<T> value(kProc);
  OutStream out;
  if (value.draw(seed, {.first = {}, .special = {}, .longest = 100})) encode(out, kProc, value.get());
  return out.octets();
}
#define ATTRIBUTE(name) &draw_attribute<fattr4_##name, &xdr_fattr4_##name>
// By number (RFC 7863). Bitmaps have up to three words; of layout types a client reckons with sixteen.
constexpr DrawAttribute kAttributes[] = {
    ATTRIBUTE(supported_attrs),
    ATTRIBUTE(type),
    ATTRIBUTE(fh_expire_type),
    ATTRIBUTE(change),
    ATTRIBUTE(size),
    ATTRIBUTE(link_support),
    ATTRIBUTE(symlink_support),
    ATTRIBUTE(named_attr),
    ATTRIBUTE(fsid),
    ATTRIBUTE(unique_handles),
    ATTRIBUTE(lease_time),
    ATTRIBUTE(rdattr_error),
    ATTRIBUTE(acl),
    ATTRIBUTE(aclsupport),
    ATTRIBUTE(archive),
    ATTRIBUTE(cansettime),
    ATTRIBUTE(case_insensitive),
    ATTRIBUTE(case_preserving),
    ATTRIBUTE(chown_restricted),
    ATTRIBUTE(filehandle),
    ATTRIBUTE(fileid),
    ATTRIBUTE(files_avail),
    ATTRIBUTE(files_free),
    ATTRIBUTE(files_total),
    ATTRIBUTE(fs_locations),
    ATTRIBUTE(hidden),
    ATTRIBUTE(homogeneous),
    ATTRIBUTE(maxfilesize),
    ATTRIBUTE(maxlink),
    ATTRIBUTE(maxname),
    ATTRIBUTE(maxread),
    ATTRIBUTE(maxwrite),
    ATTRIBUTE(mimetype),
    ATTRIBUTE(mode),
    ATTRIBUTE(no_trunc),
    ATTRIBUTE(numlinks),
    ATTRIBUTE(owner),
    ATTRIBUTE(owner_group),
    ATTRIBUTE(quota_avail_hard),
    ATTRIBUTE(quota_avail_soft),
    ATTRIBUTE(quota_used),
    ATTRIBUTE(rawdev),
    ATTRIBUTE(space_avail),
    ATTRIBUTE(space_free),
    ATTRIBUTE(space_total),
    ATTRIBUTE(space_used),
    ATTRIBUTE(system),
    ATTRIBUTE(time_access),
    ATTRIBUTE(time_access_set),
    ATTRIBUTE(time_backup),
    ATTRIBUTE(time_create),
    ATTRIBUTE(time_delta),
    ATTRIBUTE(time_metadata),
    ATTRIBUTE(time_modify),
    ATTRIBUTE(time_modify_set),
    ATTRIBUTE(mounted_on_fileid),
    ATTRIBUTE(dir_notif_delay),
    ATTRIBUTE(dirent_notif_delay),
    ATTRIBUTE(dacl),
    ATTRIBUTE(sacl),
    ATTRIBUTE(change_policy),
    ATTRIBUTE(fs_status),
    ATTRIBUTE(fs_layout_types),
    ATTRIBUTE(layout_hint),
    ATTRIBUTE(layout_types),
    ATTRIBUTE(layout_blksize),
    ATTRIBUTE(layout_alignment),
    ATTRIBUTE(fs_locations_info),
    ATTRIBUTE(mdsthreshold),
    ATTRIBUTE(retention_get),
    ATTRIBUTE(retention_set),
    ATTRIBUTE(retentevt_get),
    ATTRIBUTE(retentevt_set),
    ATTRIBUTE(retention_hold),
    ATTRIBUTE(mode_set_masked),
    ATTRIBUTE(suppattr_exclcreat),
    ATTRIBUTE(fs_charset_cap),
    ATTRIBUTE(clone_blksize),
    ATTRIBUTE(space_freed),
    ATTRIBUTE(change_attr_type),
    ATTRIBUTE(sec_label),
};
#undef ATTRIBUTE

// The octets that a client assumes where the protocol has no limit.
std::size_t usual_len(std::size_t attribute) {
  if (attribute == FATTR4_SUPPORTED_ATTRS || attribute == FATTR4_SUPPATTR_EXCLCREAT) return 4 + 4 * kAllWords;
  if (attribute == FATTR4_FS_LAYOUT_TYPES || attribute == FATTR4_LAYOUT_TYPES) return 4 + 4 * 16;
  return SIZE_MAX;
}

Octets getattr_call(const std::vector<std::uint32_t>& bitmap) {
  nfsulb::testing::Xdr call;
  call.opaque(0).u32(0).u32(1).u32(OP_GETATTR).u32(static_cast<std::uint32_t>(bitmap.size())).words(bitmap);
  return call.octets();
}

Octets getattr_reply(const std::vector<std::uint32_t>& bitmap, const Octets& values) {
  nfsulb::testing::Xdr reply;
  reply.u32(0).opaque(0).u32(1).u32(OP_GETATTR).u32(0).u32(static_cast<std::uint32_t>(bitmap.size())).words(bitmap);
  Octets octets = reply.octets();
  rpcrdma::xdr::XdrWriter(octets).opaque(values);
  return octets;
}

TEST(Nfs4Oracle, AttributesAreNotLargerThanTheirBounds) {
  RecordProperty("proves", "U1-6.2-01");
  ASSERT_EQ(std::size(kAttributes), 81u);
  std::vector<std::size_t> largest(std::size(kAttributes));
  for (std::uint32_t attribute = 0; attribute < std::size(kAttributes); ++attribute) {
    std::vector<std::uint32_t> bitmap(attribute / 32 + 1);
    bitmap.back() = 1u << (attribute % 32);
    for (std::uint64_t i = 0; i < 200; ++i) {
      SCOPED_TRACE(testing::Message() << "attribute " << attribute << " seed " << seed() << " draw " << i);
      const Octets value = kAttributes[attribute](seed() + i);
      if (value.size() > usual_len(attribute)) continue;
      largest[attribute] = std::max(largest[attribute], value.size());
      expect_bound(nfs4(), kCompound, getattr_call(bitmap), getattr_reply(bitmap, value));
      ASSERT_FALSE(HasFailure());
    }
    // The bound is not much larger: for attributes of fixed size it is exact.
    const auto bound = nfsulb::testing::bound_reply(nfs4(), kCompound, getattr_call(bitmap), kLimits);
    if (!bound.is_estimate && attribute != FATTR4_FILEHANDLE) {
      EXPECT_EQ(bound.rest, 12 + 16 + 4 * kAllWords + largest[attribute]) << attribute;
    }
  }
}

TEST(Nfs4Oracle, ManyAttributesTogether) {
  std::mt19937_64 random(seed());
  for (std::size_t i = 0; i < 500; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed() << " draw " << i);
    std::vector<std::uint32_t> bitmap(kAllWords);
    Octets values;
    for (std::uint32_t attribute = 0; attribute < std::size(kAttributes); ++attribute) {
      if (random() % 4 != 0) continue;
      bitmap[attribute / 32] |= 1u << (attribute % 32);
      const Octets value = kAttributes[attribute](random());
      if (value.size() <= usual_len(attribute)) values.insert(values.end(), value.begin(), value.end());
    }
    expect_bound(nfs4(), kCompound, getattr_call(bitmap), getattr_reply(bitmap, values));
    ASSERT_FALSE(HasFailure());
  }
}

TEST(Nfs4Oracle, RepliesToCallbacksAreNotLargerThanTheirBounds) {
  for (const nfsulb::Operation& schema : operations_of(callback())) {
    if (schema.number == OP_CB_GETATTR) continue;  // as GETATTR
    for (std::uint64_t i = 0; i < 200; ++i) {
      Value<nfs_cb_argop4> args(&xdr_nfs_cb_argop4);
      Value<nfs_cb_resop4> results(&xdr_nfs_cb_resop4);
      if (!args.draw(seed() + i, words(schema.number)) || !results.draw(seed() + i, words(schema.number))) continue;
      char tag[] = "cb";
      CB_COMPOUND4args call{{2, tag}, 2, 7, {1, &args.get()}};
      CB_COMPOUND4res reply{NFS4_OK, {2, tag}, {1, &results.get()}};
      OutStream call_out, reply_out;
      encode(call_out, &xdr_CB_COMPOUND4args, call);
      encode(reply_out, &xdr_CB_COMPOUND4res, reply);
      expect_bound(callback(), kCompound, call_out.octets(), reply_out.octets());
      ASSERT_FALSE(HasFailure()) << schema.name;
    }
  }
}

}  // namespace
}  // namespace weft::ulb_oracle
