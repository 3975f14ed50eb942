#include <random>

#include "apps/nfs3/codec.h"
#include "apps/serve/nfs_service.h"
#include "rpcrdma/xdr/xdr.h"
#include "tests/serve/fixture.h"

// From XDR arguments to XDR results, without a network.
namespace weft::serve {
namespace {

using nfs3::Nfsstat3;
using nfs3::Proc;
using rpcrdma::ServedCall;
using rpcrdma::ServedReply;
using testing::ExportTest;
using testing::write_local;

class NfsCallsTest : public ExportTest {
 protected:
  template <typename Args>
  static std::vector<std::uint8_t> xdr(const Args& args) {
    std::vector<std::uint8_t> out;
    rpcrdma::xdr::XdrWriter writer(out);
    nfs3::emit(writer, args);
    return out;
  }
  ServedReply call(Proc procedure, std::vector<std::uint8_t> args) {
    ServedCall served;
    served.procedure = static_cast<std::uint32_t>(procedure);
    served.args = args;
    rpcrdma::Buffer buffer;
    return serve_nfs_call(*backend, served, parse_bulk_args(served), buffer);
  }
  static Nfsstat3 status_of(const ServedReply& reply) {
    rpcrdma::xdr::XdrReader reader(reply.results);
    std::uint32_t status = 0xffffffff;
    EXPECT_TRUE(reader.u32(status));
    return static_cast<Nfsstat3>(status);
  }
  // Arguments of every procedure, by number, that name files which exist.
  std::vector<std::vector<std::uint8_t>> all_args() {
    write_local(dir + "/file", "text");
    const nfs3::NfsFh3 at = root(), file = handle("file");
    static constexpr std::uint8_t kData[] = {'d', 'a', 't', 'a', '!'};
    nfs3::WriteArgs write;
    write.file = file;
    write.count = 5;
    write.data = {.len = 5, .data = kData};
    nfs3::SymlinkArgs symlink;
    symlink.where = {at, "l"};
    symlink.symlink_data = {.len = 5, .data = kData};
    return {{},
            xdr(nfs3::FhArgs{at}),
            xdr(nfs3::SetattrArgs{file, {}, {}}),
            xdr(nfs3::DiropArgs{{at, "file"}}),
            xdr(nfs3::AccessArgs{at, 63}),
            xdr(nfs3::FhArgs{file}),
            xdr(nfs3::ReadArgs{file, 0, 100}),
            xdr(write),
            xdr(nfs3::CreateArgs{{at, "new"}, nfs3::Createmode3::kGuarded, {}, {}}),
            xdr(nfs3::MkdirArgs{{at, "dir"}, {}}),
            xdr(symlink),
            xdr(nfs3::MknodArgs{{at, "fifo"}, nfs3::Ftype3::kFifo, {}, {}}),
            xdr(nfs3::DiropArgs{{at, "new"}}),
            xdr(nfs3::DiropArgs{{at, "dir"}}),
            xdr(nfs3::RenameArgs{{at, "fifo"}, {at, "pipe"}}),
            xdr(nfs3::LinkArgs{file, {at, "second"}}),
            xdr(nfs3::ReaddirArgs{at, 0, {}, 4096}),
            xdr(nfs3::ReaddirplusArgs{at, 0, {}, 4096, 8192}),
            xdr(nfs3::FhArgs{at}),
            xdr(nfs3::FhArgs{at}),
            xdr(nfs3::FhArgs{at}),
            xdr(nfs3::CommitArgs{file, 0, 0})};
  }
};

TEST_F(NfsCallsTest, EveryProcedureAnswers) {
  auto args = all_args();
  ASSERT_EQ(args.size(), nfs3::kNumProcs);
  for (std::uint32_t procedure = 1; procedure < nfs3::kNumProcs; ++procedure) {
    ServedReply reply = call(static_cast<Proc>(procedure), args[procedure]);
    EXPECT_EQ(reply.accept, ServedReply::Accept::kSuccess) << procedure;
    EXPECT_EQ(status_of(reply), procedure == 5 ? Nfsstat3::kInval : Nfsstat3::kOk) << procedure;
  }
  EXPECT_EQ(call(Proc::kNull, {}).accept, ServedReply::Accept::kSuccess);
  EXPECT_EQ(call(static_cast<Proc>(22), {}).accept, ServedReply::Accept::kProcUnavail);
  EXPECT_EQ(testing::read_local(dir + "/file"), "data!");
}

TEST_F(NfsCallsTest, EveryTruncationAndAnyTailIsGarbage) {
  auto args = all_args();
  for (std::uint32_t procedure = 1; procedure < nfs3::kNumProcs; ++procedure) {
    for (std::size_t len = 0; len < args[procedure].size(); len += 4) {
      std::vector<std::uint8_t> cut(args[procedure].begin(),
                                    args[procedure].begin() + static_cast<std::ptrdiff_t>(len));
      ServedReply reply = call(static_cast<Proc>(procedure), cut);
      EXPECT_EQ(reply.accept, ServedReply::Accept::kGarbageArgs) << procedure << " cut at " << len;
      EXPECT_TRUE(reply.results.empty());
    }
    std::vector<std::uint8_t> longer = args[procedure];
    longer.resize(longer.size() + 4);
    EXPECT_EQ(call(static_cast<Proc>(procedure), longer).accept, ServedReply::Accept::kGarbageArgs) << procedure;
  }
}

TEST_F(NfsCallsTest, RandomOctetsNeverHarm) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  auto args = all_args();
  for (int round = 0; round < 2000; ++round) {
    const std::size_t procedure = random() % nfs3::kNumProcs;
    std::vector<std::uint8_t> octets = args[procedure];
    for (int i = 0; i < 3 && !octets.empty(); ++i)
      octets[random() % octets.size()] = static_cast<std::uint8_t>(random());
    call(static_cast<Proc>(procedure), octets);
  }
  EXPECT_EQ(getattr_status(root()), Nfsstat3::kOk);
}

TEST_F(NfsCallsTest, BusyIsJukeboxForEveryProcedure) {
  for (std::uint32_t procedure = 1; procedure < nfs3::kNumProcs; ++procedure)
    EXPECT_EQ(status_of(busy_reply(procedure)), Nfsstat3::kJukebox) << procedure;
}

TEST_F(NfsCallsTest, AnItemThatIsNotAsLongAsItsCountIsGarbage) {
  write_local(dir + "/file", "");
  ServedCall served;
  served.procedure = static_cast<std::uint32_t>(Proc::kWrite);
  nfs3::WriteArgs args;
  args.file = handle("file");
  args.count = args.data.len = 5;
  std::vector<std::uint8_t> octets;
  rpcrdma::xdr::XdrWriter writer(octets);
  nfs3::emit(writer, args, nfs3::ItemForm::kReduced);
  served.args = octets;
  served.items.push_back({octets.size(), {}});  // but no octets came
  rpcrdma::Buffer buffer;
  EXPECT_EQ(serve_nfs_call(*backend, served, parse_bulk_args(served), buffer).accept,
            ServedReply::Accept::kGarbageArgs);
}

// The loop and the worker use the same decoded arguments: the octets of the Call are not read again.
TEST_F(NfsCallsTest, TheArgumentsOfAReadAndOfAWriteAreDecodedOnce) {
  const auto all = all_args();
  for (const Proc procedure : {Proc::kRead, Proc::kWrite}) {
    ServedCall served;
    served.procedure = static_cast<std::uint32_t>(procedure);
    served.args = all[served.procedure];
    const BulkArgs args = parse_bulk_args(served);
    served.args = {};
    rpcrdma::Buffer buffer;
    const ServedReply reply = serve_nfs_call(*backend, served, args, buffer);
    EXPECT_EQ(reply.accept, ServedReply::Accept::kSuccess);
    EXPECT_EQ(status_of(reply), Nfsstat3::kOk);
  }
  EXPECT_EQ(testing::read_local(dir + "/file"), "data!");
}

TEST_F(NfsCallsTest, NamesOfAnyLengthAreTooLongNotGarbage) {
  write_local(dir + "/file", "text");
  const nfs3::NfsFh3 at = root(), file = handle("file");
  const std::uint8_t target[] = {'f', 'i', 'l', 'e'};
  for (const std::size_t len : {256u, 1024u, 1025u, 5000u, 1000000u}) {
    const std::string name(len, 'n');
    const std::vector<std::pair<Proc, std::vector<std::uint8_t>>> calls = {
        {Proc::kLookup, xdr(nfs3::DiropArgs{{at, name}})},
        {Proc::kCreate, xdr(nfs3::CreateArgs{{at, name}, nfs3::Createmode3::kGuarded, {}, {}})},
        {Proc::kMkdir, xdr(nfs3::MkdirArgs{{at, name}, {}})},
        {Proc::kSymlink, xdr(nfs3::SymlinkArgs{{at, name}, {}, {.len = sizeof target, .data = target}})},
        {Proc::kMknod, xdr(nfs3::MknodArgs{{at, name}, nfs3::Ftype3::kFifo, {}, {}})},
        {Proc::kRemove, xdr(nfs3::DiropArgs{{at, name}})},
        {Proc::kRmdir, xdr(nfs3::DiropArgs{{at, name}})},
        {Proc::kRename, xdr(nfs3::RenameArgs{{at, "file"}, {at, name}})},
        {Proc::kRename, xdr(nfs3::RenameArgs{{at, name}, {at, "file"}})},
        {Proc::kLink, xdr(nfs3::LinkArgs{file, {at, name}})},
    };
    for (const auto& [procedure, args] : calls) {
      const ServedReply reply = call(procedure, args);
      ASSERT_EQ(reply.accept, ServedReply::Accept::kSuccess) << len << " of " << static_cast<int>(procedure);
      EXPECT_EQ(status_of(reply), Nfsstat3::kNametoolong) << len << " of " << static_cast<int>(procedure);
    }
  }
}

}  // namespace
}  // namespace weft::serve
