#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "nfsulb/programs.h"
#include "rpcrdma/testing/protocol_under_test.h"
#include "tests/serve/serve_world.h"

// The whole server, with clients, on loopback.
namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using nfs3::Proc;
using rpcrdma::CallStatus;
using testing::pattern;
using testing::read_local;
using testing::ServeWorld;
using testing::write_local;

using Octets = std::vector<std::uint8_t>;

class ServeTest : public ServeWorld {};

TEST_F(ServeTest, MountsListsAndReads) {
  RecordProperty("proves", rpcrdma::testing::rows("U1-4.2-02", "U2-3.2-2"));
  ::mkdir((dir + "/sub").c_str(), 0755);
  write_local(dir + "/sub/small", "a few octets");
  start();
  const NfsFh3 root = mount("/");
  EXPECT_EQ(mount(app->real_path()), root);
  auto peer = connect();
  const NfsFh3 sub = lookup(*peer, root, "sub");
  EXPECT_EQ(mount("/sub"), sub);
  auto list = call<nfs3::ReaddirplusRes>(*peer, Proc::kReaddirplus, nfs3::ReaddirplusArgs{sub, 0, {}, 8192, 65536});
  ASSERT_EQ(list.status, Nfsstat3::kOk);
  EXPECT_EQ(list.entries.size(), 3u);
  Octets into(65536);
  nfs3::ReadRes res = read(*peer, lookup(*peer, sub, "small"), 0, into);
  EXPECT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_TRUE(res.eof);
  EXPECT_EQ(std::string(into.begin(), into.end()), "a few octets");
}

TEST_F(ServeTest, BulkGoesByChunkBothWays) {
  start();
  const NfsFh3 root = mount("/");
  auto peer = connect();
  auto made = call<nfs3::NewObjectRes>(*peer, Proc::kCreate,
                                       nfs3::CreateArgs{{root, "big"}, nfs3::Createmode3::kGuarded, {}, {}});
  ASSERT_EQ(made.status, Nfsstat3::kOk);
  const Octets data = pattern(std::size_t{1} << 20, 1);
  for (std::uint64_t i = 0; i < 4; ++i) {
    nfs3::WriteRes res = write(*peer, *made.obj, i << 20, data);
    ASSERT_EQ(res.status, Nfsstat3::kOk);
    ASSERT_EQ(res.count, data.size());
  }
  auto commit = call<nfs3::CommitRes>(*peer, Proc::kCommit, nfs3::CommitArgs{*made.obj, 0, 0});
  EXPECT_EQ(commit.status, Nfsstat3::kOk);
  for (std::size_t len : {std::size_t{1} << 20, std::size_t{1000003}, std::size_t{5000}, std::size_t{1}}) {
    Octets into(len);
    nfs3::ReadRes res = read(*peer, *made.obj, 3 << 20, into);
    ASSERT_EQ(res.status, Nfsstat3::kOk);
    EXPECT_EQ(into, Octets(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(len)));
  }
  const verbs::QpCounters counters = peer->client->counters();
  EXPECT_GE(counters.reads_rx, 4u);   // the server pulled the written data
  EXPECT_GE(counters.writes_rx, 2u);  // and pushed the read data
  EXPECT_EQ(read_local(dir + "/big").size(), std::size_t{4} << 20);
}

TEST_F(ServeTest, GarbageArgumentsAndUnknownProcedures) {
  start();
  auto peer = connect();
  const Octets garbage = {0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4};
  for (std::uint32_t procedure = 1; procedure < nfs3::kNumProcs; ++procedure) {
    Answer answer;
    start_call(*peer, static_cast<Proc>(procedure), garbage, answer);
    run_until([&] { return answer.done; });
    EXPECT_EQ(answer.status, CallStatus::kGarbageArgs) << procedure;
  }
  Answer answer;
  start_call(*peer, static_cast<Proc>(22), {}, answer);
  run_until([&] { return answer.done; });
  EXPECT_EQ(answer.status, CallStatus::kProcUnavail);
  answer = {};
  start_call(*peer, Proc::kNull, {}, answer);
  run_until([&] { return answer.done; });
  EXPECT_EQ(answer.status, CallStatus::kSuccess);
}

// MOUNT, NLM and NSM are for TCP.
TEST_F(ServeTest, OtherProgramsThanNfsAreNotServedOverRdma) {
  if (rpcrdma::testing::protocol_under_test() != rpcrdma::Protocol::k1) RecordProperty("proves", "U2-4.1-2");
  start();
  auto peer = connect();
  for (const std::uint32_t program : {nfsulb::kMountProgram, nfsulb::kNlmProgram, nfsulb::kNsmProgram}) {
    rpcrdma::CallSpec spec;
    spec.program = program;
    spec.version = 1;
    std::optional<CallStatus> status;
    ASSERT_TRUE(peer->client->call(spec, [&](const rpcrdma::Reply& reply) { status = reply.status; }).ok());
    run_until([&] { return status.has_value(); });
    EXPECT_EQ(status, CallStatus::kProgUnavail) << program;
  }
}

TEST_F(ServeTest, ManyReadsInFlightComeBackWhole) {
  const Octets data = pattern(std::size_t{3} << 20, 9);
  write_local(dir + "/file", std::string(data.begin(), data.end()));
  start();
  auto peer = connect();
  const NfsFh3 fh = lookup(*peer, mount("/"), "file");
  constexpr std::size_t kLen = 100000;
  struct One {
    Octets args, into = Octets(kLen);
    Answer answer;
  };
  std::vector<One> calls(24);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    rpcrdma::xdr::XdrWriter writer(calls[i].args);
    nfs3::emit(writer, nfs3::ReadArgs{fh, i * kLen, kLen});
    start_call(*peer, Proc::kRead, calls[i].args, calls[i].answer, {}, calls[i].into);
  }
  run_until([&] { return std::all_of(calls.begin(), calls.end(), [](const One& one) { return one.answer.done; }); });
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ASSERT_EQ(calls[i].answer.status, CallStatus::kSuccess);
    EXPECT_TRUE(
        std::equal(calls[i].into.begin(), calls[i].into.end(), data.begin() + static_cast<std::ptrdiff_t>(i * kLen)))
        << i;
  }
}

TEST_F(ServeTest, HandlesSurviveARestartOfTheServer) {
  write_local(dir + "/file", "content");
  start();
  const NfsFh3 root = mount("/");
  NfsFh3 file;
  {
    auto peer = connect();
    file = lookup(*peer, root, "file");
    peers.clear();
  }
  stop();
  ASSERT_EQ(::rename((dir + "/file").c_str(), (dir + "/renamed").c_str()), 0);
  start();
  EXPECT_EQ(mount("/"), root);
  auto peer = connect();
  Octets into(100);
  EXPECT_EQ(read(*peer, file, 0, into).status, Nfsstat3::kOk);
  EXPECT_EQ(std::string(into.begin(), into.end()), "content");
}

TEST_F(ServeTest, ARemoveSentAgainOverANewConnectionRunsOnce) {
  write_local(dir + "/doomed", "x");
  start();
  const nfs3::DiropArgs args{{mount("/"), "doomed"}};
  constexpr std::uint32_t kXid = 0x5eed0001;
  auto first = connect();
  EXPECT_EQ(call<nfs3::WccRes>(*first, Proc::kRemove, args, kXid).status, Nfsstat3::kOk);
  peers.clear();
  first.reset();
  auto again = connect();
  // A file that has taken the name since then is not to be removed.
  write_local(dir + "/doomed", "another");
  EXPECT_EQ(call<nfs3::WccRes>(*again, Proc::kRemove, args, kXid).status, Nfsstat3::kOk);
  EXPECT_EQ(read_local(dir + "/doomed"), "another");
  EXPECT_EQ(call<nfs3::WccRes>(*again, Proc::kRemove, args, kXid + 1).status, Nfsstat3::kOk);
  EXPECT_EQ(call<nfs3::WccRes>(*again, Proc::kRemove, args, kXid + 2).status, Nfsstat3::kNoent);
  peers.clear();
}

TEST_F(ServeTest, ReadlinkAndSymlinkByChunkOrInline) {
  start();
  const NfsFh3 root = mount("/");
  auto peer = connect({.chunks = {.max_continued_reply = 0}});
  const std::string target(4000, 't');
  nfs3::SymlinkArgs args;
  args.where = {root, "link"};
  args.symlink_data.len = static_cast<std::uint32_t>(target.size());
  Octets octets;
  rpcrdma::xdr::XdrWriter writer(octets);
  nfs3::emit(writer, args, nfs3::ItemForm::kReduced);
  const ConstBytes path(reinterpret_cast<const std::uint8_t*>(target.data()), target.size());
  Answer made;
  start_call(*peer, Proc::kSymlink, octets, made, rpcrdma::ArgumentItem{octets.size(), path});
  run_until([&] { return made.done; });
  ASSERT_EQ(made.status, CallStatus::kSuccess);
  const NfsFh3 link = lookup(*peer, root, "link");
  for (std::size_t room : {std::size_t{4096}, std::size_t{4000}, std::size_t{3999}}) {
    Octets fh, into(room);
    rpcrdma::xdr::XdrWriter fh_writer(fh);
    nfs3::emit(fh_writer, nfs3::FhArgs{link});
    Answer answer;
    start_call(*peer, Proc::kReadlink, fh, answer, {}, into);
    run_until([&] { return answer.done; });
    // A target cannot be cut short: 2-cel05 has an error for it, in 2-wg07 it comes inline in parts, and a client of
    // version 1 asks again without a Write chunk. Either way it does not fit the room.
    if (room < target.size()) {
      const bool is_cel05 = rpcrdma::testing::protocol_under_test() == rpcrdma::Protocol::k2Cel05;
      EXPECT_EQ(answer.status, is_cel05 ? CallStatus::kTransportError : CallStatus::kBadReply);
      continue;
    }
    ASSERT_EQ(answer.status, CallStatus::kSuccess) << rpcrdma::call_status_str(answer.status);
    nfs3::ReadlinkRes res;
    rpcrdma::xdr::XdrReader reader(answer.results);
    ASSERT_TRUE(nfs3::parse(reader, res, nfs3::ItemForm::kReduced));
    EXPECT_EQ(res.status, Nfsstat3::kOk);
    EXPECT_EQ(answer.item_len, target.size());
    EXPECT_EQ(std::string(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(target.size())), target);
  }
}

// READ may return less than it was asked for. A Reply that fits nowhere would be refused.
TEST_F(ServeTest, AReadWithoutAWriteChunkIsCutToWhatItsReplyCarries) {
  constexpr std::size_t kReplyWithoutData = 128;
  std::string content(60000, 0);
  std::iota(content.begin(), content.end(), 0);
  write_local(dir + "/file", content);
  start();
  const NfsFh3 root = mount("/");
  auto peer = connect({.chunks = {.max_continued_reply = 0}});
  const NfsFh3 file = lookup(*peer, root, "file");
  for (const std::size_t room : {300u, 1000u, 4224u, 9001u}) {
    Octets args;
    rpcrdma::xdr::XdrWriter writer(args);
    nfs3::emit(writer, nfs3::ReadArgs{file, 0, static_cast<std::uint32_t>(content.size())});
    Answer answer;
    start_call(*peer, Proc::kRead, args, answer, {}, {}, {}, room);
    run_until([&] { return answer.done; });
    ASSERT_EQ(answer.status, CallStatus::kSuccess) << room << ": " << rpcrdma::call_status_str(answer.status);
    nfs3::ReadRes res;
    rpcrdma::xdr::XdrReader reader(answer.results);
    ASSERT_TRUE(nfs3::parse(reader, res, nfs3::ItemForm::kInline));
    EXPECT_GE(res.count + kReplyWithoutData, room);
    EXPECT_FALSE(res.eof);
    EXPECT_TRUE(std::equal(res.data.data.begin(), res.data.data.end(), content.begin(),
                           [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }));
  }
}

TEST_F(ServeTest, TheSummaryCountsWhatWasServed) {
  write_local(dir + "/file", "text");
  start();
  EXPECT_TRUE(app->summary().starts_with("0 calls (0 READ, 0 WRITE); ")) << app->summary();
  const NfsFh3 root = mount("/");
  auto peer = connect();
  const NfsFh3 file = lookup(*peer, root, "file");
  Octets into(4);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(read(*peer, file, 0, into).status, Nfsstat3::kOk);
  ASSERT_EQ(write(*peer, file, 0, pattern(3, 1)).status, Nfsstat3::kOk);
  EXPECT_TRUE(app->summary().starts_with("4 calls (2 READ, 1 WRITE); ")) << app->summary();
  EXPECT_TRUE(app->summary().ends_with("; 0 searches for moved files")) << app->summary();
}

TEST_F(ServeTest, AnAddressInUseIsOneClearLine) {
  start();
  ServeConfig second = config;
  second.tree.state_dir = temp / "state2";
  second.mount_listen = app->mount_addr();
  auto other_device = std::move(verbs::open_soft_device({}).value());
  auto failed = ServeApp::start(second, *other_device);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("--mount-listen"), std::string::npos) << failed.status();
  second.mount_listen = config.mount_listen;
  second.tree.state_dir = temp / "state3";
  second.listen = app->rdma_addr();
  failed = ServeApp::start(second, *other_device);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("--listen"), std::string::npos) << failed.status();
}

}  // namespace
}  // namespace weft::serve
