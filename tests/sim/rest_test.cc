// The memory of a connection that has come to rest, counted at operator new.

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "mpa/wire/release_memory.h"
#include "rdmap/testing/pair.h"

namespace {

std::atomic<std::size_t> held{0};

}  // namespace

// The forms for arrays and without exceptions, too: sanitizers bring their own, which would not come by here.
void* operator new(std::size_t len) {
  void* const memory = std::malloc(len);
  if (memory == nullptr) std::abort();
  held += malloc_usable_size(memory);
  return memory;
}
void* operator new[](std::size_t len) {
  return operator new(len);
}
void* operator new(std::size_t len, const std::nothrow_t& /*unused*/) noexcept {
  return operator new(len);
}
void* operator new[](std::size_t len, const std::nothrow_t& /*unused*/) noexcept {
  return operator new(len);
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) held -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*unused*/) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory, const std::nothrow_t& /*unused*/) noexcept {
  operator delete(memory);
}

namespace weft::sim {
namespace {

using rdmap::SendOp;
using rdmap::SendWr;
using rdmap::testing::Pair;
using rdmap::testing::Side;

// Of both ends, beside the Streams themselves: what their Sides keep.
constexpr std::size_t kMostAtRest = 2048;

SendWr request(SendOp op, std::uint32_t len) {
  SendWr wr;
  wr.op = op;
  wr.sg_list = {{0, len, ddp::Stag{1}}};
  wr.remote_stag = ddp::Stag{2};
  return wr;
}

// Many small messages at once, large ones, Reads, and an FPDU that arrives in two halves with a park between them.
void work(Pair& pair) {
  for (Side* side : {&pair.a, &pair.b}) {
    side->memory.add_simple(1, 0, 0, 1 << 20);
    side->memory.add_simple(2, 0, 0, 1 << 20);
  }
  pair.emss = 65483;
  for (int i = 0; i < 200; ++i) {
    pair.b.recvs.post(0, {{0, 4096, ddp::Stag{1}}});
    ASSERT_EQ(pair.a.stream.post_send(request(SendOp::kSend, 4000)), rdmap::PostResult::kOk);
  }
  pair.run();
  for (const std::uint32_t len : {1u << 20, 300000u, 9000u})
    for (const SendOp op : {SendOp::kRdmaWrite, SendOp::kRdmaRead})
      ASSERT_EQ(pair.a.stream.post_send(request(op, len)), rdmap::PostResult::kOk);
  pair.run();
  ASSERT_EQ(pair.a.stream.post_send(request(SendOp::kRdmaWrite, 60000)), rdmap::PostResult::kOk);
  const auto octets = pair.a.transmit(pair.now, pair.emss, 5000);
  pair.b.receive(ConstBytes(octets).first(58000), pair.now);
  pair.b.stream.park(pair.b.staging);
  pair.b.receive(ConstBytes(octets).subspan(58000), pair.now);
  pair.run();
}

TEST(Rest, AConnectionAtRestHoldsLittle) {
  const std::size_t before = held;
  auto pair = std::make_unique<Pair>();
  // The staging is the worker's. The memory and the lists of events are the test's.
  const std::size_t not_the_streams = 2 * (160 * 1024 + sizeof(Side));
  pair->connect();
  ASSERT_TRUE(pair->a.established && pair->b.established);
  work(*pair);
  for (Side* side : {&pair->a, &pair->b}) {
    ASSERT_TRUE(side->closed.empty());
    side->stream.trim();
    release_memory(side->completions);
    side->memory.regions.clear();
    side->recvs.posted = {};
  }
  const std::size_t both = held - before;
  RecordProperty("octets_at_rest", std::to_string((both - std::min(both, not_the_streams)) / 2));
  // Both of them together hold less than one may: an FPDU's worth kept by one end would show.
  EXPECT_LE(both, not_the_streams + kMostAtRest);
  // The connection goes on as if it had not rested.
  work(*pair);
  pair->run();
  EXPECT_EQ(pair->a.completions.size(), 200u + 6 + 1);
  EXPECT_EQ(pair->b.completions.size(), 200u);
}

}  // namespace
}  // namespace weft::sim
