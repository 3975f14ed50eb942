#include "nfsulb/nfs3.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nfsulb/programs.h"
#include "nfsulb/testing/octets.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::nfsulb {
namespace {

using Octets = std::vector<std::uint8_t>;
using rpcrdma::Walked;
using rpcrdma::xdr::XdrWriter;

constexpr std::uint32_t kReaddir = 16;
constexpr std::uint32_t kReaddirplus = 17;

// The parts that arguments are made of, as XDR.
class Args {
 public:
  Args& fh(std::size_t len = 64) { return opaque(len); }
  Args& opaque(std::size_t len) {
    XdrWriter(octets_).opaque(Octets(len, 0x11));
    return *this;
  }
  Args& u32(std::uint32_t value) {
    XdrWriter(octets_).u32(value);
    return *this;
  }
  Args& u64(std::uint64_t value) {
    XdrWriter(octets_).u64(value);
    return *this;
  }
  Args& full_sattr() { return u32(1).u32(0644).u32(1).u32(1).u32(1).u32(2).u32(1).u64(3).u32(2).u64(4).u32(2).u64(5); }
  Args& empty_sattr() { return u32(0).u32(0).u32(0).u32(0).u32(0).u32(1); }
  const Octets& octets() const { return octets_; }

 private:
  Octets octets_;
};

std::size_t bound_of(std::uint32_t procedure, const Octets& args) {
  const auto bound = testing::bound_reply(nfs3_binding(), procedure, args);
  EXPECT_EQ(bound.walked, Walked::kWhole) << "procedure " << procedure;
  return bound.rest;
}
Walked walked(std::uint32_t procedure, const Octets& args) {
  const Walked walked = testing::walk_arguments(nfs3_binding(), procedure, args).walked;
  EXPECT_EQ(testing::bound_reply(nfs3_binding(), procedure, args).walked, walked);
  return walked;
}

// One legal Call for each procedure, items inline.
Octets call_of(std::uint32_t procedure) {
  Args args;
  switch (procedure) {
    case 0: return {};
    case 2: return args.fh().full_sattr().u32(1).u64(9).octets();
    case 3:
    case 12:
    case 13: return args.fh().opaque(255).octets();
    case 4: return args.fh().u32(0x3f).octets();
    case 6: return args.fh().u64(0).u32(4096).octets();
    case 7: return args.fh().u64(0).u32(5).u32(2).opaque(5).octets();
    case 8: return args.fh().opaque(3).u32(2).u64(7).octets();
    case 9: return args.fh().opaque(3).full_sattr().octets();
    case 10: return args.fh().opaque(3).full_sattr().opaque(10).octets();
    case 11: return args.fh().opaque(3).u32(3).full_sattr().u32(8).u32(1).octets();
    case 14: return args.fh().opaque(1).fh().opaque(2).octets();
    case 15: return args.fh().fh(32).opaque(2).octets();
    case kReaddir: return args.fh().u64(0).u64(0).u32(8192).octets();
    case kReaddirplus: return args.fh().u64(0).u64(0).u32(512).u32(32768).octets();
    case 21: return args.fh().u64(0).u32(0).octets();
    default: return args.fh().octets();
  }
}

TEST(Nfs3Binding, Numbers) {
  RecordProperty("proves", "U1-5-01");
  EXPECT_EQ(nfs3_binding().program, 100003u);
  EXPECT_EQ(nfs3_binding().version, 3u);
  EXPECT_EQ(kMountProgram, 100005u);
  EXPECT_EQ(kMountV3, 3u);
  EXPECT_EQ(kNfsRdmaPort, 20049);
}

TEST(Nfs3Binding, BoundsAreThoseOfTheTable) {
  RecordProperty("proves", "U1-3-01 U1-3-04 U1-4.1-01");
  // nfsulb-eligibility.tsv, program 100003 version 3, without RH and without the eligible result; with the 104 octets
  // that servers may leave out of the count of a directory's entries.
  const std::size_t table[] = {
      0,   88,  120, 248, 96, 96, 104, 136, 280, 280, 280, 280, 120, 120, 236, 208, 4 + 8192 + 104, 4 + 32768 + 104,
      144, 140, 116, 128};
  ASSERT_EQ(std::size(table), 22u);
  for (std::uint32_t procedure = 0; procedure < 22; ++procedure) {
    EXPECT_EQ(bound_of(procedure, call_of(procedure)), table[procedure]) << "procedure " << procedure;
  }
}

TEST(Nfs3Binding, ReaddirBoundCoversTheFailureArm) {
  const Octets tiny = Args().fh().u64(0).u64(0).u32(1).octets();
  EXPECT_EQ(bound_of(kReaddir, tiny), 4u + 1 + 104);
  const Octets huge = Args().fh().u64(0).u64(0).u32(0xffffffff).octets();
  EXPECT_EQ(bound_of(kReaddir, huge), std::size_t{4} + 0xffffffff + 104);
}

TEST(Nfs3Binding, OnlyWriteAndSymlinkHaveAnEligibleArgument) {
  RecordProperty("proves", "U1-4-05");
  for (std::uint32_t procedure = 0; procedure < 22; ++procedure) {
    const auto walk = testing::walk_arguments(nfs3_binding(), procedure, call_of(procedure));
    EXPECT_EQ(walk.items.size(), procedure == 7 || procedure == 10 ? 1u : 0u) << procedure;
  }
}

TEST(Nfs3Binding, OnlyReadlinkAndReadHaveAnEligibleResult) {
  RecordProperty("proves", "U1-4-03 U1-4-04 U1-4-05");
  for (std::uint32_t procedure = 0; procedure < 22; ++procedure) {
    const auto bound = testing::bound_reply(nfs3_binding(), procedure, call_of(procedure));
    EXPECT_EQ(bound.items.size(), procedure == 5 || procedure == 6 ? 1u : 0u) << procedure;
  }
}

// No octet of the arguments is looked at.
TEST(Nfs3Binding, TheProcedureAloneTellsWhatMayRunTwice) {
  const auto idempotent = [](std::uint32_t procedure, const Octets& args) {
    return nfs3_binding().is_idempotent(procedure, args, {});
  };
  for (std::uint32_t procedure = 0; procedure < 22; ++procedure) {
    EXPECT_EQ(idempotent(procedure, {}), idempotent(procedure, call_of(procedure))) << procedure;
  }
  EXPECT_TRUE(idempotent(6, {}));
  EXPECT_FALSE(idempotent(7, {}));
  EXPECT_FALSE(idempotent(22, {})) << "unknown";
}

TEST(Nfs3Binding, EveryTruncationAndEveryTailIsGarbage) {
  for (std::uint32_t procedure = 1; procedure < 22; ++procedure) {
    const Octets whole = call_of(procedure);
    for (std::size_t len = 0; len < whole.size(); ++len) {
      const Octets cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(len));
      EXPECT_EQ(walked(procedure, cut), Walked::kGarbage) << procedure << " at " << len;
    }
    Octets longer = whole;
    longer.resize(longer.size() + 4);
    EXPECT_EQ(walked(procedure, longer), Walked::kGarbage) << procedure;
  }
}

TEST(Nfs3Binding, FileHandlesOverSixtyFourOctetsAreGarbage) {
  EXPECT_EQ(walked(1, Args().fh(64).octets()), Walked::kWhole);
  EXPECT_EQ(walked(1, Args().fh(65).octets()), Walked::kGarbage);
}

TEST(Nfs3Binding, UnknownUnionArmsAreGarbage) {
  EXPECT_EQ(walked(8, Args().fh().opaque(1).u32(3).u64(0).octets()), Walked::kGarbage);  // createmode3
  EXPECT_EQ(walked(11, Args().fh().opaque(1).u32(8).octets()), Walked::kGarbage);        // ftype3
  EXPECT_EQ(walked(11, Args().fh().opaque(1).u32(1).octets()), Walked::kWhole);          // void arm
  EXPECT_EQ(walked(9, Args().fh().opaque(1).u32(2).u32(0).octets()), Walked::kGarbage);  // a bool of 2
  EXPECT_EQ(walked(9, Args().fh().opaque(1).u32(0).u32(0).u32(0).u32(0).u32(0).u32(3).octets()),
            Walked::kGarbage);  // time_how
}

}  // namespace
}  // namespace weft::nfsulb
