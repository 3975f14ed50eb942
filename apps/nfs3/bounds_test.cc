// The bounds of the binding against the largest result of each procedure, as emitted here.
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "apps/nfs3/codec.h"
#include "apps/nfs3/samples_test.h"
#include "nfsulb/nfs3.h"

namespace weft::nfs3 {
namespace {

using Octets = std::vector<std::uint8_t>;
using testing::dirop;
using testing::fattr;
using testing::full_fh;
using testing::wcc;

template <typename T, typename... Form>
Octets emitted(const T& value, Form... form) {
  Octets octets;
  XdrWriter writer(octets);
  emit(writer, value, form...);
  return octets;
}

template <typename Args, typename Res, typename... Form>
void check_bound(Proc proc, const Args& args, const Res& largest, Form... form) {
  const auto bound = nfsulb::nfs3_binding().max_results(static_cast<std::uint32_t>(proc), emitted(args));
  EXPECT_EQ(bound, emitted(largest, form...).size()) << proc_info(static_cast<std::uint32_t>(proc))->name;
}

TEST(Bounds, AreTheLargestResults) {
  RecordProperty("proves", "U1-3-01 U1-3.1-07");
  const NewObjectRes new_object{Nfsstat3::kOk, full_fh(), fattr(), wcc()};
  const DiropArgs name{dirop()};
  check_bound(Proc::kNull, VoidArgs{}, VoidRes{});
  check_bound(Proc::kGetattr, FhArgs{full_fh()}, GetattrRes{Nfsstat3::kOk, fattr()});
  check_bound(Proc::kSetattr, SetattrArgs{full_fh(), {}, {}}, WccRes{Nfsstat3::kOk, wcc()});
  check_bound(Proc::kLookup, name, LookupRes{Nfsstat3::kOk, full_fh(), fattr(), fattr()});
  check_bound(Proc::kAccess, AccessArgs{full_fh(), 1}, AccessRes{Nfsstat3::kOk, fattr(), 1});
  check_bound(Proc::kReadlink, FhArgs{full_fh()}, ReadlinkRes{Nfsstat3::kOk, fattr(), {}}, ItemForm::kReduced);
  check_bound(Proc::kRead, ReadArgs{full_fh(), 0, 9}, ReadRes{Nfsstat3::kOk, fattr(), 9, true, {9, {}}},
              ItemForm::kReduced);
  check_bound(Proc::kWrite, WriteArgs{full_fh(), 0, 0, StableHow::kUnstable, {}},
              WriteRes{Nfsstat3::kOk, wcc(), 0, StableHow::kUnstable, {}});
  check_bound(Proc::kCreate, CreateArgs{dirop(), Createmode3::kGuarded, testing::sattr(), {}}, new_object);
  check_bound(Proc::kMkdir, MkdirArgs{dirop(), {}}, new_object);
  check_bound(Proc::kSymlink, SymlinkArgs{dirop(), {}, {}}, new_object);
  check_bound(Proc::kMknod, MknodArgs{dirop(), Ftype3::kFifo, {}, {}}, new_object);
  check_bound(Proc::kRemove, name, WccRes{Nfsstat3::kOk, wcc()});
  check_bound(Proc::kRmdir, name, WccRes{Nfsstat3::kOk, wcc()});
  check_bound(Proc::kRename, RenameArgs{dirop(), dirop()}, RenameRes{Nfsstat3::kOk, wcc(), wcc()});
  check_bound(Proc::kLink, LinkArgs{full_fh(), dirop()}, LinkRes{Nfsstat3::kOk, fattr(), wcc()});
  // The bound has room for the fields that servers do not count (nfsulb/server_habits.h).
  check_bound(Proc::kReaddir, ReaddirArgs{full_fh(), 0, {}, 0}, ReaddirRes{Nfsstat3::kOk, fattr(), {}, {}, true});
  check_bound(Proc::kReaddirplus, ReaddirplusArgs{full_fh(), 0, {}, 0, 0},
              ReaddirplusRes{Nfsstat3::kOk, fattr(), {}, {}, true});
  check_bound(Proc::kFsstat, FhArgs{full_fh()}, FsstatRes{Nfsstat3::kOk, fattr(), 1, 2, 3, 4, 5, 6, 7});
  check_bound(Proc::kFsinfo, FhArgs{full_fh()}, FsinfoRes{Nfsstat3::kOk, fattr(), 1, 2, 3, 4, 5, 6, 7, 8, {}, 0});
  check_bound(Proc::kPathconf, FhArgs{full_fh()}, PathconfRes{Nfsstat3::kOk, fattr(), 1, 2, true, true, true, true});
  check_bound(Proc::kCommit, CommitArgs{full_fh(), 0, 0}, CommitRes{Nfsstat3::kOk, wcc(), {}});
}

// The count pays for the whole resok by the RFC; there is room for a server that counts the entries alone.
TEST(Bounds, ReaddirCountPaysForTheEntriesAtLeast) {
  RecordProperty("proves", "U1-3-04");
  const ReaddirRes res{Nfsstat3::kOk, fattr(), {}, {{1, "a name", 1}, {2, "another", 2}}, true};
  const auto entries_len = static_cast<std::uint32_t>(entry_len(6) + entry_len(7));
  check_bound(Proc::kReaddir, ReaddirArgs{full_fh(), 0, {}, entries_len}, res);
}

TEST(Bounds, BindingFindsWhatTheCodecLeavesOut) {
  RecordProperty("proves", "U1-4-01 U1-4-02");
  const Octets write =
      emitted(WriteArgs{full_fh(), 5, 1 << 20, StableHow::kUnstable, {1 << 20, {}}}, ItemForm::kReduced);
  const Octets symlink = emitted(SymlinkArgs{dirop(), testing::sattr(), {900, {}}}, ItemForm::kReduced);
  const auto expect_item_behind = [](Proc proc, const Octets& args, std::uint32_t len) {
    const std::size_t end = args.size();
    std::vector<rpcrdma::EligibleItem> items;
    const auto walked =
        nfsulb::nfs3_binding().walk_arguments(static_cast<std::uint32_t>(proc), args, std::span(&end, 1), items);
    EXPECT_EQ(walked, rpcrdma::Walked::kWhole);
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(items[0].offset, end);
    EXPECT_EQ(items[0].len, len);
  };
  expect_item_behind(Proc::kWrite, write, 1 << 20);
  expect_item_behind(Proc::kSymlink, symlink, 900);
}

}  // namespace
}  // namespace weft::nfs3
