#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "apps/dissect/testing/rpc.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"

// Both drafts of RPC-over-RDMA version 2 on a connection made by hand.
namespace weft::apps::dissect::testing {

namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;

inline Octets cel05_message(std::uint32_t xid, cel05::Body body, ConstBytes payload = {}, std::uint32_t credit = 8) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit_header(out, cel05::Header{.xid = xid, .credit = credit, .body = std::move(body)});
  out.raw(payload);
  return octets;
}

inline Octets wg07_message(std::uint32_t xid, wg07::Body body, ConstBytes payload = {}, std::uint32_t credit = 8) {
  Octets octets;
  rpcrdma::xdr::XdrWriter out(octets);
  emit_header(out, wg07::Header{.xid = xid, .credit = credit, .body = std::move(body)});
  out.raw(payload);
  return octets;
}

inline rpcrdma::ChunkListsView write_chunk(std::uint32_t handle, std::uint32_t len) {
  rpcrdma::ChunkListsView lists;
  lists.write_list = {{{.handle = handle, .length = len}}};
  return lists;
}

inline rpcrdma::ChunkListsView read_chunk(std::uint32_t position) {
  rpcrdma::ChunkListsView lists;
  lists.read_list.push_back({.position = position, .target = {.handle = 7, .length = 4096}});
  return lists;
}

inline rpcrdma::ChunkListsView reply_chunk(std::uint32_t handle, std::uint32_t len) {
  rpcrdma::ChunkListsView lists;
  lists.reply_chunk = {{.handle = handle, .length = len}};
  return lists;
}

// A connection of one version, as the tests below speak it.
struct Cel05 {
  static constexpr rpcrdma::Protocol kProtocol = rpcrdma::Protocol::k2Cel05;
  static Octets call(std::uint32_t xid, rpcrdma::ChunkListsView lists = {}, std::uint32_t inv_handle = 0,
                     std::uint32_t procedure = 0, const Octets& args = {}) {
    return cel05_message(xid, cel05::Msg{.inv_handle = inv_handle, .lists = std::move(lists)},
                         rpc_call(xid, procedure, args));
  }
  static Octets reply(std::uint32_t xid, rpcrdma::ChunkListsView lists = {}, std::uint32_t credit = 8) {
    return cel05_message(xid, cel05::Msg{.direction = cel05::Direction::kReply, .lists = std::move(lists)},
                         rpc_reply(xid, {}), credit);
  }
};
struct Wg07 {
  static constexpr rpcrdma::Protocol kProtocol = rpcrdma::Protocol::k2Wg07;
  static Octets call(std::uint32_t xid, rpcrdma::ChunkListsView lists = {}, std::uint32_t inv_handle = 0,
                     std::uint32_t procedure = 0, const Octets& args = {}) {
    return wg07_message(xid, wg07::CallInline{.inv_handle = inv_handle, .lists = std::move(lists)},
                        rpc_call(xid, procedure, args));
  }
  static Octets reply(std::uint32_t xid, rpcrdma::ChunkListsView lists = {}, std::uint32_t credit = 8) {
    return wg07_message(xid, wg07::ReplyInline{.lists = std::move(lists)}, rpc_reply(xid, {}), credit);
  }
};

// DraftTest: a test of both drafts.
template <typename Draft>
struct DraftTest : ::testing::Test {
  static bool is_wg07() { return Draft::kProtocol == rpcrdma::Protocol::k2Wg07; }
  static const char* of(const char* cel05, const char* wg07) { return is_wg07() ? wg07 : cel05; }
};
using Drafts = ::testing::Types<Cel05, Wg07>;

}  // namespace weft::apps::dissect::testing
