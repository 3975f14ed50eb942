// RFC 5040 section 8.1.1: memory protection, with real registrations and windows.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/conformance/rdmap_device.h"

namespace weft::conformance {
namespace {

TEST_F(RdmapDevice, ProtectionDomainsAreApart) {
  RecordProperty("proves", "RDMAP-8.1.1-01");
  auto other = std::move(device_->alloc_pd().value());
  Mem theirs(*other, 64, kAll, 0xa5), inbox(*pd_, 64, Access::kLocalWrite);
  const std::uint32_t stag = theirs.mr->rkey();
  const Octets w = write(stag, theirs.addr(), ramp(8)), r = read_request(1, 1, 0, 8, stag, theirs.addr()),
               i = send(1, ramp(8), true, 0, 0x44, stag);
  EXPECT_EQ(refused(connect(), w).ulpdu, terminate_for(w, 0x11, 0x02));
  EXPECT_EQ(refused(connect(), r).ulpdu, terminate_for(r, 0x01, 0x03, true));
  Peer& inviter = connect();
  ASSERT_TRUE(inviter.qp->post_recv({.wr_id = 1, .sg_list = std::array{inbox.sge()}}).ok());
  EXPECT_EQ(refused(inviter, i).ulpdu, terminate_for(i, 0x01, 0x09));
  EXPECT_EQ(theirs.octets, Octets(64, 0xa5));
  Peer& owner = connect(16, other.get());
  EXPECT_TRUE(writable(owner, theirs, 5));
  peers_.clear();
}

TEST_F(RdmapDevice, RightsAreThoseOfTheRegistration) {
  RecordProperty("proves", "RDMAP-3.2-09");
  auto other = std::move(device_->alloc_pd().value());
  Mem read_only(*pd_, 64, Access::kRemoteRead, 1), write_only(*pd_, 64, Access::kLocalWrite | Access::kRemoteWrite, 2),
      both(*pd_, 64, kAll, 3), none(*pd_, 64, Access::kLocalWrite, 4);
  struct Case {
    Mem* mem;
    bool readable, writable;
  };
  for (const Case& c :
       {Case{&read_only, true, false}, {&write_only, false, true}, {&both, true, true}, {&none, false, false}}) {
    const Octets before = c.mem->octets;
    const Octets w = write(c.mem->mr->rkey(), c.mem->addr(), Octets(1, 99)),
                 r = read_request(1, 1, 0, 8, c.mem->mr->rkey(), c.mem->addr());
    Peer& reader = connect();
    if (c.readable) {
      reader.say_ulpdu(r);
      ASSERT_TRUE(drive([&] { return reader.segments().size() == 1; }));
      EXPECT_EQ(reader.segments()[0].payload, Octets(before.begin(), before.begin() + 8));
    } else {
      EXPECT_EQ(refused(reader, r).ulpdu, terminate_for(r, 0x01, 0x02, true));
    }
    if (c.writable) {
      EXPECT_TRUE(writable(connect(), *c.mem, 0));
    } else {
      EXPECT_EQ(refused(connect(), w).opcode, 7u);
      EXPECT_EQ(c.mem->octets, before);
    }
    // A stream that the STag is not associated with.
    EXPECT_EQ(refused(connect(16, other.get()), w).opcode, 7u);
    EXPECT_EQ(refused(connect(16, other.get()), r).ulpdu, terminate_for(r, 0x01, 0x03, true));
  }
  peers_.clear();
}

TEST_F(RdmapDevice, NothingOutsideTheRegionIsReached) {
  RecordProperty("proves", "RDMAP-8.1.1-03");
  constexpr std::size_t kGuard = 4096, kLen = 1024;
  Octets arena(2 * kGuard + kLen, 0xa5);
  auto mr = std::move(pd_->reg_mr(arena.data() + kGuard, kLen, kAll).value());
  const auto base = reinterpret_cast<std::uintptr_t>(arena.data()) + kGuard;
  constexpr std::uint64_t kSeed = 8101;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  std::size_t num_refused = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t len = 1 + random() % 3000;
    std::uint64_t to = base - kGuard + random() % arena.size();
    if (i % 4 == 1) to = ~std::uint64_t{0} - random() % 2048;  // a range that wraps
    if (i % 4 == 2) to = random();
    if (i % 4 == 3) to = base + random() % kLen;
    const bool inside = to >= base && to - base <= kLen && len <= kLen - (to - base);
    Peer& peer = connect();
    if (inside) {
      peer.say_ulpdu(write(mr->rkey(), to, Octets(len, 0x11)));
      peer.say_ulpdu(read_request(1, 1, 0, static_cast<std::uint32_t>(len), mr->rkey(), to));
      ASSERT_TRUE(drive([&] { return !peer.segments().empty(); }));
      EXPECT_EQ(peer.segments()[0].payload, Octets(peer.segments()[0].payload.size(), 0x11));
      std::fill_n(arena.begin() + kGuard, kLen, 0xa5);
    } else {
      ++num_refused;
      const Octets bad = i % 2 == 0 ? write(mr->rkey(), to, Octets(len, 0x11))
                                    : read_request(1, 1, 0, static_cast<std::uint32_t>(len), mr->rkey(), to);
      EXPECT_EQ(refused(peer, bad).opcode, 7u);
    }
    ASSERT_EQ(arena, Octets(arena.size(), 0xa5)) << i;
    peer.hang_up();
    peers_.clear();
  }
  EXPECT_GT(num_refused, 150u);
  EXPECT_LT(num_refused, 300u);
}

TEST_F(RdmapDevice, RightsCanBeGivenAndTakenBack) {
  RecordProperty("proves", "RDMAP-8.1.1-04");
  Octets memory(64, 0xa5);
  for (const Access access : {Access::kLocalWrite | Access::kRemoteWrite, Access::kRemoteRead, kAll}) {
    auto mr = std::move(pd_->reg_mr(memory.data(), memory.size(), access).value());
    const auto addr = reinterpret_cast<std::uintptr_t>(memory.data());
    const Octets w = write(mr->rkey(), addr, ramp(8)), r = read_request(1, 1, 0, 8, mr->rkey(), addr);
    Peer& peer = connect();
    const bool by_write = has(access, Access::kRemoteWrite);
    if (by_write) {
      std::fill(memory.begin(), memory.end(), 0xa5);
      peer.say_ulpdu(w);
      ASSERT_TRUE(drive([&] { return memory[7] == 7; }));
    }
    if (has(access, Access::kRemoteRead)) {
      peer.say_ulpdu(r);
      ASSERT_TRUE(drive([&] { return peer.segments().size() == 1; }));
    }
    mr.reset();
    std::fill(memory.begin(), memory.end(), 0xa5);
    const Octets again = by_write ? w : read_request(2, 1, 0, 8, static_cast<std::uint32_t>(get(r, 34, 4)), addr);
    EXPECT_EQ(refused(peer, again).ulpdu,
              by_write ? terminate_for(w, 0x11, 0x00) : terminate_for(again, 0x01, 0x00, true));
    EXPECT_EQ(memory, Octets(64, 0xa5));
  }
}

TEST_F(RdmapDevice, NothingArrivesBehindADeregistration) {
  RecordProperty("proves", "RDMAP-8.1.1-05");
  constexpr std::size_t kLen = 1 << 20, kPiece = 16384;
  Octets memory(kLen, 0xa5);
  auto mr = std::move(pd_->reg_mr(memory.data(), kLen, kAll).value());
  const auto addr = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uint32_t stag = mr->rkey();
  Peer& peer = connect();
  // One Write of a MiB; the device takes part of it, then the memory is taken back while the rest is in flight.
  for (std::size_t at = 0; at < kLen; at += kPiece)
    peer.say_ulpdu(write(stag, addr + at, Octets(kPiece, 0x11), at + kPiece == kLen));
  ASSERT_TRUE(drive([&] { return memory[4 * kPiece - 1] == 0x11; }));
  mr.reset();
  const Octets at_revoke = memory;
  ASSERT_NE(memory.back(), 0x11) << "nothing was in flight";
  ASSERT_TRUE(drive([&] { return peer.eof; }));
  EXPECT_TRUE(memory == at_revoke);
  const auto heard = peer.segments();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(Octets(heard[0].payload.begin(), heard[0].payload.begin() + 4), (Octets{0x11, 0x00, 0xc0, 0x00}));
}

TEST_F(RdmapDevice, AnStagOfSeveralStreamsIsNotThePeersToTake) {
  RecordProperty("proves", "RDMAP-8.1.1-06");
  Mem shared(*pd_, 64, kAll), inbox(*pd_, 64, Access::kLocalWrite);
  Peer& other = connect();
  for (const unsigned control : {0x44u, 0x46u}) {
    Peer& peer = connect();
    ASSERT_TRUE(peer.qp->post_recv({.wr_id = 1, .sg_list = std::array{inbox.sge()}}).ok());
    const Octets bad = send(1, ramp(4), true, 0, control, shared.mr->rkey());
    EXPECT_EQ(refused(peer, bad).ulpdu, terminate_for(bad, 0x02, 0x09));
    EXPECT_TRUE(writable(other, shared, 3));
  }
}

TEST_F(RdmapDevice, StagsAreHardToGuess) {
  RecordProperty("proves", "RDMAP-8.1.1-07");
  Octets memory(64);
  std::vector<std::uint32_t> stags;
  std::vector<std::unique_ptr<verbs::Mr>> held;
  for (int i = 0; i < 10000; ++i) {
    auto mr = std::move(pd_->reg_mr(memory.data(), memory.size(), kAll).value());
    stags.push_back(mr->rkey());
    if (i % 2 == 0) held.push_back(std::move(mr));  // every other one is given back at once
  }
  EXPECT_EQ(std::set<std::uint32_t>(stags.begin(), stags.end()).size(), stags.size());
  std::map<std::uint32_t, int> strides;
  std::set<std::uint32_t> values[4];
  for (std::size_t i = 0; i < stags.size(); ++i) {
    if (i > 0) ++strides[stags[i] - stags[i - 1]];
    for (int octet = 0; octet < 4; ++octet) values[octet].insert(stags[i] >> (8 * octet) & 0xff);
  }
  for (const auto& [stride, times] : strides) EXPECT_LE(times, 3) << stride;
  for (const auto& seen : values) EXPECT_GT(seen.size(), 250u) << "each octet takes nearly every value";
}

TEST_F(RdmapDevice, AWindowIsItsOwnStreamsAlone) {
  RecordProperty("proves", "RDMAP-8.1.1-02");
  Mem mem(*pd_, 64, kAll | Access::kMwBind, 0xa5), inbox(*pd_, 64, Access::kLocalWrite);
  Peer& owner = connect();
  const Window window = bind(owner, mem);
  const Octets w = write(window.rkey, mem.addr(), ramp(8)), r = read_request(1, 1, 0, 8, window.rkey, mem.addr()),
               i = send(1, ramp(4), true, 0, 0x44, window.rkey);
  EXPECT_EQ(refused(connect(), w).ulpdu, terminate_for(w, 0x11, 0x02));
  EXPECT_EQ(refused(connect(), r).ulpdu, terminate_for(r, 0x01, 0x03, true));
  Peer& other = connect();
  ASSERT_TRUE(other.qp->post_recv({.wr_id = 1, .sg_list = std::array{inbox.sge()}}).ok());
  EXPECT_EQ(refused(other, i).ulpdu, terminate_for(i, 0x01, 0x09));
  EXPECT_EQ(mem.octets, Octets(64, 0xa5));
  owner.say_ulpdu(w);
  EXPECT_TRUE(drive([&] { return mem.octets[7] == 7; })) << "its own stream still has it";
  peers_.clear();
}

}  // namespace
}  // namespace weft::conformance
