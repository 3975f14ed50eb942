#include "nfsulb/nfs4_attributes.h"

#include <iterator>

#include "nfsulb/nfs4_types.h"

namespace weft::nfsulb {
namespace {

using namespace xdr;

constexpr std::uint32_t kLayoutTypes = 16;  // that a client expects at most; four are registered

constexpr Type pathname4 = array<component4>;
constexpr Type fs_location4 = structure<array<utf8string>, pathname4>;
constexpr Type fs_locations4 = structure<pathname4, array<fs_location4>>;
constexpr Type fs_locations_server4 = structure<uint32, opaque<>, utf8string>;
constexpr Type fs_locations_item4 = structure<array<fs_locations_server4>, pathname4>;
constexpr Type fs_locations_info4 = structure<uint32, uint32, pathname4, array<fs_locations_item4>>;
constexpr Type nfsacl41 = structure<uint32, array<nfsace4>>;
constexpr Type change_policy4 = structure<uint64, uint64>;
constexpr Type fs4_status = structure<boolean, uint32, utf8string, utf8string, uint32, nfstime4>;
constexpr Type layouttypes = array<uint32, kNoLimit, kLayoutTypes>;
constexpr Type threshold_item4 = structure<uint32, bitmap4, opaque<>>;
constexpr Type mdsthreshold4 = array<threshold_item4>;
constexpr Type retention_get4 = structure<uint64, array<nfstime4, 1>>;
constexpr Type retention_set4 = structure<boolean, array<uint64, 1>>;
constexpr Type mode_masked4 = structure<uint32, uint32>;
constexpr Type sec_label4 = structure<uint32, uint32, opaque<>>;
constexpr Type mode_umask4 = structure<uint32, uint32>;

// By number. U1-6.2-01, -02: attributes of unbounded size are marked with unbounded.
constexpr const Type* kAttributes[] = {
    &bitmap4,                        // 0 supported_attrs
    &uint32,                         // 1 type
    &uint32,                         // 2 fh_expire_type
    &uint64,                         // 3 change
    &uint64,                         // 4 size
    &boolean,                        // 5 link_support
    &boolean,                        // 6 symlink_support
    &boolean,                        // 7 named_attr
    &fsid4,                          // 8 fsid
    &boolean,                        // 9 unique_handles
    &uint32,                         // 10 lease_time
    &uint32,                         // 11 rdattr_error
    &array<nfsace4>,                 // 12 acl
    &uint32,                         // 13 aclsupport
    &boolean,                        // 14 archive
    &boolean,                        // 15 cansettime
    &boolean,                        // 16 case_insensitive
    &boolean,                        // 17 case_preserving
    &boolean,                        // 18 chown_restricted
    &nfs_fh4,                        // 19 filehandle
    &uint64,                         // 20 fileid
    &uint64,                         // 21 files_avail
    &uint64,                         // 22 files_free
    &uint64,                         // 23 files_total
    &unbounded<fs_locations4>,       // 24 fs_locations
    &boolean,                        // 25 hidden
    &boolean,                        // 26 homogeneous
    &uint64,                         // 27 maxfilesize
    &uint32,                         // 28 maxlink
    &uint32,                         // 29 maxname
    &uint64,                         // 30 maxread
    &uint64,                         // 31 maxwrite
    &utf8string,                     // 32 mimetype
    &uint32,                         // 33 mode
    &boolean,                        // 34 no_trunc
    &uint32,                         // 35 numlinks
    &utf8string,                     // 36 owner
    &utf8string,                     // 37 owner_group
    &uint64,                         // 38 quota_avail_hard
    &uint64,                         // 39 quota_avail_soft
    &uint64,                         // 40 quota_used
    &specdata4,                      // 41 rawdev
    &uint64,                         // 42 space_avail
    &uint64,                         // 43 space_free
    &uint64,                         // 44 space_total
    &uint64,                         // 45 space_used
    &boolean,                        // 46 system
    &nfstime4,                       // 47 time_access
    &settime4,                       // 48 time_access_set
    &nfstime4,                       // 49 time_backup
    &nfstime4,                       // 50 time_create
    &nfstime4,                       // 51 time_delta
    &nfstime4,                       // 52 time_metadata
    &nfstime4,                       // 53 time_modify
    &settime4,                       // 54 time_modify_set
    &uint64,                         // 55 mounted_on_fileid
    &nfstime4,                       // 56 dir_notif_delay
    &nfstime4,                       // 57 dirent_notif_delay
    &nfsacl41,                       // 58 dacl
    &nfsacl41,                       // 59 sacl
    &change_policy4,                 // 60 change_policy
    &fs4_status,                     // 61 fs_status
    &layouttypes,                    // 62 fs_layout_types
    &layouthint4,                    // 63 layout_hint
    &layouttypes,                    // 64 layout_types
    &uint32,                         // 65 layout_blksize
    &uint32,                         // 66 layout_alignment
    &unbounded<fs_locations_info4>,  // 67 fs_locations_info
    &unbounded<mdsthreshold4>,       // 68 mdsthreshold
    &retention_get4,                 // 69 retention_get
    &retention_set4,                 // 70 retention_set
    &retention_get4,                 // 71 retentevt_get
    &retention_set4,                 // 72 retentevt_set
    &uint64,                         // 73 retention_hold
    &mode_masked4,                   // 74 mode_set_masked
    &bitmap4,                        // 75 suppattr_exclcreat
    &uint32,                         // 76 fs_charset_cap
    &uint32,                         // 77 clone_blksize
    &uint64,                         // 78 space_freed
    &uint32,                         // 79 change_attr_type
    &sec_label4,                     // 80 sec_label
    &mode_umask4,                    // 81 mode_umask (RFC 8275)
    &boolean,                        // 82 xattr_support (RFC 8276)
};

}  // namespace

const Type* attribute_type(std::size_t number) {
  return number < std::size(kAttributes) ? kAttributes[number] : nullptr;
}

}  // namespace weft::nfsulb
