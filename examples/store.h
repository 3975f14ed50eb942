// A store of octets in memory, from which both servers answer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "blocks.h"
#include "rpcrdma/call.h"

class Store {
 public:
  Store() : octets_(1 << 20) {
    constexpr std::string_view kText = "The quick brown fox jumps over the lazy dog. ";
    for (std::size_t i = 0; i < octets_.size(); ++i) octets_[i] = static_cast<std::uint8_t>(kText[i % kText.size()]);
  }

  // Octets of the Buffer that the answer needs. Take it within on_call: there the Buffer is sure to be available.
  std::size_t room_for(const weft::rpcrdma::ServedCall& call) const {
    weft::rpcrdma::xdr::XdrReader in(call.args);
    std::uint64_t offset = 0;
    std::uint32_t count = 0;
    if (call.procedure != kRead || !in.u64(offset) || !in.u32(count) || offset > octets_.size()) return 0;
    const std::size_t there = std::min<std::size_t>(count, octets_.size() - offset);
    return std::min({there, call.result_room, call.result_item_capacity().value_or(there)});
  }

  // Any thread may fill the Buffer.
  weft::rpcrdma::ServedReply answer(weft::rpcrdma::ServedCall& call, weft::rpcrdma::Buffer room) {
    weft::rpcrdma::ServedReply reply;
    weft::rpcrdma::xdr::XdrReader in(call.args);
    std::uint64_t offset = 0;
    if (call.procedure == 0) return reply;
    if (call.procedure > kWrite) {
      reply.accept = weft::rpcrdma::ServedReply::Accept::kProcUnavail;
    } else if (!in.u64(offset) || offset > octets_.size()) {
      reply.accept = weft::rpcrdma::ServedReply::Accept::kGarbageArgs;
    } else if (call.procedure == kRead) {
      read(offset, std::move(room), reply);
    } else if (!write(offset, call, in)) {
      reply.accept = weft::rpcrdma::ServedReply::Accept::kGarbageArgs;
    }
    return reply;
  }

 private:
  void read(std::uint64_t offset, weft::rpcrdma::Buffer room, weft::rpcrdma::ServedReply& reply) {
    const std::size_t len = room.octets().size();
    weft::rpcrdma::xdr::XdrWriter(reply.results).u32(static_cast<std::uint32_t>(len));
    if (len == 0) return;
    const std::scoped_lock lock(mutex_);
    std::copy_n(octets_.data() + offset, len, room.octets().data());
    reply.add_item(std::move(room), len);
  }

  bool write(std::uint64_t offset, const weft::rpcrdma::ServedCall& call, weft::rpcrdma::xdr::XdrReader& in) {
    // Data that came by RDMA is an item. Data that fitted the message is part of the arguments.
    weft::ConstBytes data;
    if (!call.items.empty()) {
      data = call.items[0].data.octets();
    } else if (!in.opaque(data)) {
      return false;
    }
    if (data.size() > octets_.size() - offset) return false;
    const std::scoped_lock lock(mutex_);
    std::copy(data.begin(), data.end(), octets_.data() + offset);
    return true;
  }

  std::mutex mutex_;
  std::vector<std::uint8_t> octets_;
};
