// RFC 5042 sections 2.2, 6.1, 6.2 and 6.3 over the soft RNIC: each peer's access to memory, and other peers' view of
// it.
#include <sys/mman.h>
#include <unistd.h>

#include "tests/conformance/network.h"

namespace weft::conformance {
namespace {

class SecurityMemory : public NetworkTest {
 protected:
  void SetUp() override {
    verbs::SoftConfig config;
    config.crc = false;  // so that a plain socket is a peer, too
    open(config);
  }
};

TEST_F(SecurityMemory, WithoutARemoteRightNothingIsReachable) {
  RecordProperty("proves", "SEC-2.2.2-02");
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  for (const Access access : {Access::kNone, Access::kLocalWrite}) {
    Mem target(*server_->pd, 64, access, 0xa5);
    EXPECT_EQ(attack(link(), WrOpcode::kRdmaWrite, mine, target.addr(), target.mr->rkey()), "1/1/00");
    Link& reader = link();
    EXPECT_EQ(attack(reader, WrOpcode::kRdmaRead, mine, target.addr(), target.mr->rkey()), "0/1/02");
    EXPECT_EQ(reader.server.qp->counters().read_octets_tx, 0u);
    EXPECT_EQ(target.octets, Octets(64, 0xa5));
    EXPECT_EQ(mine.octets, Octets(64, 1));
  }
}

TEST_F(SecurityMemory, OneBufferHasOtherRightsOnOtherStreams) {
  RecordProperty("proves", "SEC-2.2.2-03");
  auto readers = server_->new_pd(), writers = server_->new_pd();
  Octets buffer(64, 0xa5);
  auto for_reading = std::move(readers->reg_mr(buffer.data(), buffer.size(), Access::kRemoteRead).value());
  auto for_writing =
      std::move(writers->reg_mr(buffer.data(), buffer.size(), Access::kLocalWrite | Access::kRemoteWrite).value());
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  const auto at = reinterpret_cast<std::uintptr_t>(buffer.data());

  Link& reader = link({.server_pd = readers.get()});
  Link& writer = link({.server_pd = writers.get()});
  ASSERT_TRUE(writer.client.rdma(WrOpcode::kRdmaWrite, {mine.sge(0, 32)}, at, for_writing->rkey()).ok());
  ASSERT_TRUE(drive([&] { return writer.server.qp->counters().writes_rx == 1; }));
  ASSERT_TRUE(reader.client.rdma(WrOpcode::kRdmaRead, {mine.sge()}, at, for_reading->rkey()).ok());
  ASSERT_TRUE(succeeds(reader.client));
  Octets expected(64, 0xa5);
  std::fill_n(expected.begin(), 32, 1);
  EXPECT_EQ(mine.octets, expected);

  EXPECT_EQ(attack(reader, WrOpcode::kRdmaWrite, mine, at, for_reading->rkey()), "1/1/00");
  EXPECT_EQ(attack(writer, WrOpcode::kRdmaRead, mine, at, for_writing->rkey()), "0/1/02");
  EXPECT_EQ(buffer, expected);
}

TEST_F(SecurityMemory, AForeignStagTellsNothingAndHarmsNobody) {
  RecordProperty("proves", "SEC-2.2.5-02 SEC-3-03 SEC-6.1.1-01 SEC-6.1.1-04 R1-10.1-02");
  auto other_pd = server_->new_pd();
  Mem target(*server_->pd, 64, kAll, 0xa5);
  Mem ones(*client_->pd, 64, Access::kLocalWrite, 1);
  Mem twos(*client_->pd, 64, Access::kLocalWrite, 2);
  Link& owner = link();
  Link& partner = link();  // another stream of the same PD
  expect_writes(owner, ones, target);
  expect_writes(partner, twos, target);
  const std::uint32_t rkey = target.mr->rkey();
  // In range, above it, below it: the answer is the same.
  for (const std::uint64_t to : {target.addr(), target.addr(1 << 20), std::uint64_t{0}}) {
    EXPECT_EQ(attack(link({.server_pd = other_pd.get()}), WrOpcode::kRdmaWrite, ones, to, rkey), "1/1/02");
    EXPECT_EQ(target.octets, twos.octets);
  }
  expect_writes(owner, ones, target);
  expect_writes(partner, twos, target);
}

TEST_F(SecurityMemory, AForeignPdIsRefusedForWriteReadAndInvalidate) {
  RecordProperty("proves", "SEC-6.1.1-02");
  auto other_pd = server_->new_pd();
  Mem target(*server_->pd, 64, kAll, 0xa5);
  Mem inbox(*other_pd, 64, Access::kLocalWrite);
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  const LinkOptions foreign{.server_pd = other_pd.get()};
  EXPECT_EQ(attack(link(foreign), WrOpcode::kRdmaWrite, mine, target.addr(), target.mr->rkey()), "1/1/02");
  Link& reader = link(foreign);
  EXPECT_EQ(attack(reader, WrOpcode::kRdmaRead, mine, target.addr(), target.mr->rkey()), "0/1/03");
  EXPECT_EQ(reader.server.qp->counters().read_octets_tx, 0u);
  Link& invalidator = link(foreign);
  ASSERT_TRUE(invalidator.server.recv({inbox.sge()}).ok());
  ASSERT_TRUE(invalidator.client.send_invalidate({mine.sge()}, target.mr->rkey()).ok());
  EXPECT_EQ(terminate_seen(invalidator), "0/1/09");
  EXPECT_EQ(target.octets, Octets(64, 0xa5));
  expect_writes(link(), mine, target);  // still valid
}

TEST_F(SecurityMemory, AnStagThatStreamsShareIsNoPeersToInvalidate) {
  RecordProperty("proves", "SEC-5040.8.1.1-01 SEC-5040.7.2-02");
  Mem target(*server_->pd, 64, kAll, 0xa5);
  Mem inbox(*server_->pd, 64, Access::kLocalWrite);
  Mem ones(*client_->pd, 64, Access::kLocalWrite, 1);
  Mem twos(*client_->pd, 64, Access::kLocalWrite, 2);
  Link& first = link();
  Link& second = link();
  // Shared by two streams, then unknown in its key octet only, then unknown altogether.
  for (const std::uint32_t flip : {0u, 1u, 0x80000000u}) {
    Link& invalidator = link();
    ASSERT_TRUE(invalidator.server.recv({inbox.sge()}).ok());
    ASSERT_TRUE(invalidator.client.send_invalidate({ones.sge()}, target.mr->rkey() ^ flip).ok());
    EXPECT_EQ(terminate_seen(invalidator), "0/2/09") << flip;
    expect_writes(first, ones, target);
    expect_writes(second, twos, target);
  }
}

TEST_F(SecurityMemory, AWindowIsOfOneStreamWhateverThePd) {
  RecordProperty("proves", "SEC-2.2.5-03 SEC-6.1.1-03");
  Mem target(*server_->pd, 64, kAll | Access::kMwBind, 0xa5);
  Mem inbox(*server_->pd, 64, Access::kLocalWrite);
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  auto window = std::move(server_->pd->alloc_mw().value());
  Link& owner = link();
  expect_writes(owner, mine, target);  // so that the responder may speak, and so bind
  verbs::SendWr bind{.sg_list = {}, .opcode = WrOpcode::kBindMw};
  bind.bind_mw = {window.get(), verbs::inc_rkey(window->rkey()),           target.mr.get(), target.addr(),
                  64,           Access::kRemoteRead | Access::kRemoteWrite};
  ASSERT_TRUE(owner.server.qp->post_send(bind).ok());
  ASSERT_TRUE(succeeds(owner.server));
  const std::uint32_t rkey = window->rkey();

  Mem twos(*client_->pd, 64, Access::kLocalWrite, 2);
  EXPECT_EQ(attack(link(), WrOpcode::kRdmaWrite, twos, target.addr(), rkey), "1/1/02");
  Link& reader = link();
  EXPECT_EQ(attack(reader, WrOpcode::kRdmaRead, twos, target.addr(), rkey), "0/1/03");
  EXPECT_EQ(reader.server.qp->counters().read_octets_tx, 0u);
  Link& invalidator = link();
  ASSERT_TRUE(invalidator.server.recv({inbox.sge()}).ok());
  ASSERT_TRUE(invalidator.client.send_invalidate({twos.sge()}, rkey).ok());
  EXPECT_EQ(terminate_seen(invalidator), "0/1/09");
  EXPECT_EQ(target.octets, mine.octets);

  // Its own stream still writes through it.
  ASSERT_TRUE(owner.client.rdma(WrOpcode::kRdmaWrite, {twos.sge()}, target.addr(), rkey).ok());
  ASSERT_TRUE(drive([&] { return target.octets == twos.octets; }));
}

TEST_F(SecurityMemory, NoWorkRequestWidensARangeOrAddsARight) {
  RecordProperty("proves", "SEC-2.3.2-01");
  Mem target(*server_->pd, 64, Access::kLocalWrite | Access::kRemoteWrite | Access::kMwBind, 0xa5);
  Mem readable(*server_->pd, 64, Access::kRemoteRead | Access::kMwBind, 0xa5);
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  struct Case {
    const char* what;
    Mem& memory;
    std::uint64_t offset, length;
    Access access;
  };
  const Case cases[] = {
      {"longer than the region", target, 0, 65, Access::kRemoteWrite},
      {"before the region", target, UINT64_MAX, 64, Access::kRemoteWrite},
      {"behind the region", target, 1, 64, Access::kRemoteWrite},
      {"written where only reading is allowed", readable, 0, 64, Access::kRemoteWrite},
  };
  // Binding a window is the one work request that makes memory reachable.
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    auto window = std::move(server_->pd->alloc_mw().value());
    Link& at = link();
    expect_writes(at, mine, target);
    const std::uint32_t rkey = verbs::inc_rkey(window->rkey());
    verbs::SendWr bind{.sg_list = {}, .opcode = WrOpcode::kBindMw};
    bind.bind_mw = {window.get(), rkey, c.memory.mr.get(), c.memory.addr() + c.offset, c.length, c.access};
    if (at.server.qp->post_send(bind).ok()) {
      EXPECT_EQ(next(at.server).status, WcStatus::kMwBindErr);
    }
    EXPECT_EQ(attack(link(), WrOpcode::kRdmaWrite, mine, c.memory.addr(), rkey), "1/1/00");
  }
  EXPECT_EQ(readable.octets, Octets(64, 0xa5));
}

TEST_F(SecurityMemory, BoundsHoldToTheOctetBetweenGuardPages) {
  RecordProperty("proves", "SEC-6.2.1-01 SEC-6.3.1-01");
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const area = ::mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(area, MAP_FAILED);
  auto* const base = static_cast<std::uint8_t*>(area) + page;
  ASSERT_EQ(::mprotect(base, page, PROT_READ | PROT_WRITE), 0);
  std::fill_n(base, page, std::uint8_t{0xa5});
  {
    auto mr = std::move(server_->pd->reg_mr(base, page, kAll).value());
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(base);
    Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
    for (const std::uint64_t to :
         {at - 1, at - 64, at + page - 63, at + page, std::uint64_t{0}, at + (std::uint64_t{1} << 40)}) {
      SCOPED_TRACE(to - at);
      EXPECT_EQ(attack(link(), WrOpcode::kRdmaWrite, mine, to, mr->rkey()), "1/1/01");
      Link& reader = link();
      EXPECT_EQ(attack(reader, WrOpcode::kRdmaRead, mine, to, mr->rkey()), "0/1/01");
      EXPECT_EQ(reader.server.qp->counters().read_octets_tx, 0u);
    }
    for (const std::uint64_t to : {UINT64_MAX - 62, UINT64_MAX}) {
      End end;  // no source of ours would send this
      const Fd raw = raw_link(end);
      say(raw, write_fpdu(mr->rkey(), to, std::string(64, '\1')));
      EXPECT_EQ(raw_terminate(raw), "1/1/03");
      Link& reader = link();
      EXPECT_EQ(attack(reader, WrOpcode::kRdmaRead, mine, to, mr->rkey()), "0/1/04");
      EXPECT_EQ(reader.server.qp->counters().read_octets_tx, 0u);
    }
    EXPECT_EQ(mine.octets, Octets(64, 1));
    EXPECT_EQ(Octets(base, base + page), Octets(page, 0xa5));
    // The last octets are reachable.
    Link& writer = link();
    ASSERT_TRUE(writer.client.rdma(WrOpcode::kRdmaWrite, {mine.sge()}, at + page - 64, mr->rkey()).ok());
    ASSERT_TRUE(drive([&] { return base[page - 1] == 1; }));
    EXPECT_EQ(Octets(base, base + page - 64), Octets(page - 64, 0xa5));
  }
  ::munmap(area, 3 * page);
}

TEST_F(SecurityMemory, AnInvalidStagCostsTheConnection) {
  RecordProperty("proves", "SEC-5.1.1-01");
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  Mem target(*server_->pd, 64, kAll, 0xa5);
  EXPECT_EQ(attack(link(), WrOpcode::kRdmaWrite, mine, target.addr(), target.mr->rkey() ^ 0x100), "1/1/00");
  EXPECT_EQ(target.octets, Octets(64, 0xa5));
}

TEST_F(SecurityMemory, AnEmptyReadNeedsNoStag) {
  RecordProperty("proves", "SEC-6.3.5-02");
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  Mem target(*server_->pd, 64, kAll, 0xa5);
  Link& reader = link();
  for (const std::uint64_t to : {std::uint64_t{0}, UINT64_MAX}) {
    ASSERT_TRUE(reader.client.rdma(WrOpcode::kRdmaRead, {}, to, 0xdeadbeef).ok());
    const verbs::Wc wc = next(reader.client);
    EXPECT_EQ(wc.status, WcStatus::kSuccess);
    EXPECT_EQ(wc.byte_len, 0u);
  }
  EXPECT_EQ(reader.server.qp->counters().reads_rx, 2u);
  EXPECT_EQ(reader.server.qp->counters().read_octets_tx, 0u);
  expect_writes(reader, mine, target);
}

TEST_F(SecurityMemory, ReadAndWriteAccessTogether) {
  RecordProperty("proves", "SEC-6.3.5-03");
  Mem target(*server_->pd, 64, kAll, 0xa5);
  Mem ones(*client_->pd, 64, Access::kLocalWrite, 1);
  Mem sink(*client_->pd, 64, Access::kLocalWrite, 2);
  Link& both = link();
  expect_writes(both, ones, target);
  ASSERT_TRUE(both.client.rdma(WrOpcode::kRdmaRead, {sink.sge()}, target.addr(), target.mr->rkey()).ok());
  ASSERT_TRUE(succeeds(both.client));
  EXPECT_EQ(sink.octets, ones.octets);
}

TEST_F(SecurityMemory, WritesLeaveNoCompletionAtTheSink) {
  RecordProperty("proves", "SEC-2.2.6-01");
  Mem target(*server_->pd, 64, kAll);
  Mem mine(*client_->pd, 64, Access::kLocalWrite, 1);
  Link& writer = link();
  constexpr std::uint64_t kWrites = 10000;
  std::uint64_t num_posted = 0, num_done = 0;
  ASSERT_TRUE(drive([&] {
    num_done += writer.client.wcs.size();
    writer.client.wcs.clear();
    for (; num_posted < kWrites && num_posted < num_done + 64; ++num_posted) {
      if (!writer.client.rdma(WrOpcode::kRdmaWrite, {mine.sge()}, target.addr(), target.mr->rkey()).ok()) return true;
    }
    return writer.server.qp->counters().writes_rx == kWrites;
  }));
  EXPECT_EQ(writer.server.qp->counters().writes_rx, kWrites);
  EXPECT_TRUE(writer.server.wcs.empty());
}

}  // namespace
}  // namespace weft::conformance
