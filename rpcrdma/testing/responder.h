#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "rpcrdma/registrations.h"
#include "rpcrdma/testing/engines.h"

// A responder whose peer is the test: memory that it offers, and Calls made by hand.
namespace weft::rpcrdma::testing {

struct ResponderTest : ::testing::Test {
  void open(ResponderEnd::Options options = {}) { end = std::make_unique<ResponderEnd>(memory, options); }

  Segment offer(Octets& octets, verbs::Access access) {
    mrs.push_back(std::make_unique<FakeMr>(memory, FakeMemory::Region{octets.data(), octets.size(), access}));
    return {mrs.back()->rkey(), static_cast<std::uint32_t>(octets.size()),
            reinterpret_cast<std::uintptr_t>(octets.data())};
  }
  Segment readable(Octets& octets) { return offer(octets, verbs::Access::kRemoteRead); }
  Segment writable(Octets& octets) { return offer(octets, verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite); }
  // The same for octets that the test keeps in `rooms`.
  Segment writable(std::size_t len) { return writable(rooms.emplace_back(len)); }

  static Octets rpc_call(std::uint32_t procedure, const Octets& args = {}, std::uint32_t xid = 5) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_call(out, {xid, kTestProgram, kTestVersion, procedure, {}, {}});
    out.raw(args);
    return octets;
  }

  static v1::Header call_header() {
    v1::Header header;
    header.xid = 5;
    header.credit = 8;
    return header;
  }

  // Delivers a Call and returns the responder's Sends.
  const std::vector<Octets>& call(const v1::Header& header, const Octets& payload) {
    EXPECT_TRUE(end->qp.inject(message(header, payload)));
    end->pump();
    return end->qp.sent;
  }
  // Delivers a Call without arguments, under the next XID.
  void call(std::uint32_t procedure, v1::Header header = {}) {
    header.xid = ++xid;
    header.credit = 8;
    call(header, rpc_call(procedure, {}, xid));
  }

  ServedReply item_reply(const Octets& item, const Octets& before, const Octets& behind = {}) {
    ServedReply reply;
    Buffer buffer = end->pool.take(std::max<std::size_t>(item.size(), 1));
    std::copy(item.begin(), item.end(), buffer.octets().begin());
    reply.results = before;
    reply.add_item(std::move(buffer), item.size());
    reply.results.insert(reply.results.end(), behind.begin(), behind.end());
    return reply;
  }

  void answer(ServedReply reply) {
    ASSERT_FALSE(end->service.calls.empty());
    EXPECT_TRUE(end->responder->reply(end->service.calls.back().id, std::move(reply)));
    end->pump();
  }

  // A message takes a handle away that a window of this end has.
  void deliver_invalidating(const Octets& message) {
    Octets room(100);
    Registrations window;
    Segment segment;
    ASSERT_TRUE(window.add(end->pd, true, room.data(), room.size(), verbs::Access::kRemoteWrite, segment).ok());
    ASSERT_TRUE(window.bind(*end->endpoint));
    ASSERT_TRUE(end->qp.inject(message, segment.handle));
    end->pump();
  }

  FakeMemory memory;
  std::deque<Octets> rooms;
  std::vector<std::unique_ptr<FakeMr>> mrs;
  std::uint32_t xid = 0;
  std::unique_ptr<ResponderEnd> end;
};

}  // namespace weft::rpcrdma::testing
