#pragma once

#include <gtest/gtest.h>

#include <variant>

#include "rpcrdma/testing/requester.h"
#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::rpcrdma::testing {

namespace cel05 = v2_cel05;

// The transport header has 36 octets, the RPC header of a Call 40.
inline constexpr std::size_t kCallHeaders = 76;

// A requester of cel05, whose peer is the test.
struct Cel05RequesterTest : RequesterTest {
  void open(RequesterEnd::Options options = {}) {
    options.protocol = Protocol::k2Cel05;
    RequesterTest::open(options);
  }
  cel05::Header header_of(std::size_t i) {
    cel05::Header header;
    ConstBytes payload;
    EXPECT_EQ(parse_message(sent(i), header, payload), v2::HeaderError::kNone);
    return header;
  }
  template <typename Body>
  Body body_of(std::size_t i) {
    const cel05::Header header = header_of(i);
    const Body* body = std::get_if<Body>(&header.body);
    EXPECT_NE(body, nullptr) << "Send " << i << " has another type";
    return body != nullptr ? *body : Body{};
  }
  Octets octets_of(const cel05::Header& header, const Octets& payload = {}) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_header(out, header);
    out.raw(payload);
    return octets;
  }
  // The Reply to Send i, with its lists unused.
  Octets reply_of(std::size_t i, std::uint32_t credit = 8) {
    const cel05::Header call = header_of(i);
    cel05::Msg body{.direction = cel05::Direction::kReply};
    std::visit(
        [&](const auto& sent) {
          if constexpr (requires { sent.lists; }) body.lists = sent.lists;
        },
        call.body);
    body.lists.read_list.clear();
    for (SegmentArray& chunk : body.lists.write_list) {
      for (Segment& segment : chunk) segment.length = 0;
    }
    if (body.lists.reply_chunk) {
      for (Segment& segment : *body.lists.reply_chunk) segment.length = 0;
    }
    return octets_of({.xid = call.xid, .credit = credit, .body = body}, rpc_reply(call.xid));
  }
  void refuse(std::size_t i, const cel05::Error& error) {
    deliver(octets_of({.xid = header_of(i).xid, .credit = 8, .body = error}));
  }
  void call_of(std::uint32_t procedure, const Octets& args) {
    CallSpec spec;
    spec.procedure = procedure;
    spec.args = args;
    call(spec);
  }
  // A WRITE whose data needs a Read chunk, and a READ whose data needs a Write chunk.
  void call_write() {
    CallSpec spec;
    spec.procedure = kWrite;
    spec.args = args_;
    spec.items = ArgumentItem{write_position(), data_};
    call(spec);
  }
  void call_read() {
    CallSpec spec;
    spec.procedure = kRead;
    spec.result_items = room_;
    spec.max_results = 4;
    call(spec);
  }
  void get_credits() {
    call_of(kNull, {});
    deliver(reply_of(0));
  }

  const Octets data_ = pattern(9000);
  const Octets args_ = write_args(data_.size());
  Octets room_ = Octets(8000);
};

}  // namespace weft::rpcrdma::testing
