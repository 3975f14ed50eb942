#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "rpcrdma/binding.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/rpc_message.h"

// One RPC as its two ends see it: the caller's CallSpec and Reply, the handler's ServedCall and ServedReply.
namespace weft::rpcrdma {

// OneOrMore is empty, holds one T, or views several Ts that stand elsewhere and outlive it. Pass several Ts as an
// lvalue or as a view (std::span): a temporary container does not compile.
template <typename T>
class OneOrMore {
 public:
  OneOrMore() = default;
  template <typename U>
  requires(std::convertible_to<U, T> && !std::same_as<std::remove_cvref_t<U>, OneOrMore>) OneOrMore(U&& one)
      : one_(std::forward<U>(one)), size_(1) {}  // NOLINT: conversion is the point
  template <typename Several>
  requires(!std::convertible_to<Several, T> && std::convertible_to<Several, std::span<const T>> &&
           !std::same_as<std::remove_cvref_t<Several>, OneOrMore> && std::ranges::borrowed_range<Several>)
      OneOrMore(Several&& several)
      : OneOrMore(View{std::span<const T>(several)}) {}  // NOLINT: conversion is the point

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return several_ != nullptr ? several_ : &one_; }
  const T* end() const { return begin() + size_; }
  const T& operator[](std::size_t i) const { return begin()[i]; }

 private:
  struct View {
    std::span<const T> several;
  };
  explicit OneOrMore(View view) : several_(view.several.data()), size_(view.several.size()) {}

  T one_{};
  const T* several_ = nullptr;
  std::size_t size_ = 0;
};

// GatheredBytes: the octets of one item, in one or several buffers, in order. Each buffer is a segment of its chunk.
using GatheredBytes = OneOrMore<ConstBytes>;
using ScatteredBytes = OneOrMore<MutBytes>;

// ArgumentItem is a DDP-eligible argument, left out of CallSpec::args together with its padding: `data` stands behind
// the first `position` octets of the arguments. The engine sends it inline if the Call then fits, else as a Read chunk.
// The caller keeps the memory unchanged until the call ended.
struct ArgumentItem {
  std::size_t position = 0;
  GatheredBytes data;
};

// CallSpec is one RPC Call. All memory that it views stays valid until the call ended.
struct CallSpec {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  // The binding of this program and version. A Call without a binding has no items (R1-8-01).
  const Binding* binding = nullptr;
  const OpaqueAuth* cred = nullptr;  // null: AUTH_NONE
  ConstBytes args;                   // XDR, without the items
  OneOrMore<ArgumentItem> items;     // in ascending order of position, at most 64
  // Room for the DDP-eligible results: one entry for each result that can have an item, in the order of
  // Binding::walk_results. When the Call has succeeded, the room has the octets of its result, in whatever form the
  // Reply came (Reply::item_lens). A result that is longer than its room ends the Call as kBadReply. An entry without
  // octets leaves its result in Reply::results. The engine offers Write chunks if the bound of the whole Reply exceeds
  // the reply inline threshold.
  OneOrMore<ScatteredBytes> result_items;
  std::size_t max_results = 0;  // bound of the XDR results without the room of result_items (R1-8.2-01)
  std::size_t max_verf = 0;     // bound of the Reply's verifier body; with RPCSEC_GSS the largest body
  std::optional<std::chrono::milliseconds> timeout;  // instead of the client's
  // The procedure has no Reply (draft-ietf-nfsv4-rpcrdma-version-two-07 section 4.7). The Call succeeds when its last
  // message is handed to the connection, which proves nothing about the server. It has no chunks, so it must be short
  // enough for messages (ChunkUse::max_continued_call). In versions without Calls of this kind it fails.
  bool call_only = false;
  // A health check goes before all waiting Calls and may use the reserved credit (ClientConfig::reserve_credit).
  bool is_health_check = false;

  // For gateways, which pass on another client's Call:
  // An XID that no Call under way has. A retry after ERR_CHUNK goes out under another XID; Reply::message then has that
  // XID.
  std::optional<std::uint32_t> xid;
  const OpaqueAuth* verf = nullptr;  // null: AUTH_NONE
  // A result that does not come by Write chunk stays in Reply::results and leaves its room as it was. Its entry of
  // Reply::item_lens is empty.
  bool leaves_inline_results = false;
};

// ChunkUse: how complex the chunk lists of a requester's Calls may be. Every server takes the defaults (RFC 8267
// section 6.4.2, U1-6.4.2-02 to -04). Set more only for servers that are known to take more.
struct ChunkUse {
  std::size_t max_segments = 16;    // of each chunk
  std::size_t max_read_chunks = 1;  // besides a Position Zero Read chunk
  std::size_t max_write_chunks = 1;
  // False: if a Reply can be too long even without its items, the Call asks for the items in the Reply chunk. If a Call
  // has both, the Linux kernel's server sends a Reply whose length includes the items.
  bool write_list_with_reply_chunk = false;
  // Where an RPC message may be several messages: octets of a Call, and of a bound of a Reply, that go in several
  // messages rather than by chunks. 0: none do. Without a number, what costs no more than chunks goes in several
  // messages (docs/rpcrdma-v2.md): up to 8 KiB in two messages, but not results with room of their own
  // (CallSpec::result_items). Calls that can have no chunks may then be 16 KiB long.
  std::optional<std::size_t> max_continued_call = {}, max_continued_reply = {};
  // Without max_continued_call: longer Calls, up to 32 KiB, go in several messages while the measured round trip is
  // longer than the work of all messages under way. A Read chunk costs a second round trip. Off, the form of a Call
  // does not depend on time.
  bool weighs_round_trip = false;
  bool long_calls_with_items = false;   // a Long Call sends its items in Read chunks of their own
  bool roundup_in_read_chunks = false;  // RFC 8166 section 3.4.5.2 says SHOULD NOT
};

// CallId names one Call of the Client, Server or ThreadedClient that made it, until the Call ended.
struct CallId {
  std::uint64_t value = 0;
  friend bool operator==(CallId, CallId) = default;
};

enum class CallStatus : std::uint8_t {
  kSuccess,  // accept_stat SUCCESS: results are there
  kProgUnavail,
  kProgMismatch,
  kProcUnavail,
  kGarbageArgs,
  kSystemErr,
  kDenied,          // MSG_DENIED: text says RPC_MISMATCH or which auth_stat
  kVersMismatch,    // the peer does not speak this version: ERR_VERS (RFC 8166 section 4.5), VERS_MISMATCH
  kTransportError,  // any other error of the transport: ERR_CHUNK, or the codes of version 2; text names it
  kBadReply,        // a Reply that breaks RFC 8166's rules for this Call
  kTimeout,
  kCancelled,
  kDisconnected,
  kLocalError,  // for example, memory could not be registered
};

const char* call_status_str(CallStatus status);

// Reply: how a call ended. Views are valid only during the callback. None of the caller's memory is remotely accessible
// by then.
struct Reply {
  CallStatus status = CallStatus::kSuccess;
  ConstBytes results;  // XDR, without the octets and padding of the items that have room in CallSpec::result_items
  // One entry for each of CallSpec::result_items, if the Call succeeded: the number of octets in that room. It is a
  // number wherever the Call gave room: 0 if the Reply has no such item, or an empty one. It is empty where the Call
  // gave none.
  std::span<const std::optional<std::size_t>> item_lens;
  // The first of item_lens; empty if there is none.
  std::optional<std::size_t> item_len;
  // The RPC Reply as it came, header and results. Empty if no Reply came that decodes.
  ConstBytes message;
  std::string text;  // one line for every status but kSuccess
  // The Call certainly did not run: it was never sent, or the peer refused its header or chunks. False where this is
  // not certain, and for the RPC errors, which have statuses of their own.
  bool did_not_run = false;
};

using ReplyCallback = std::function<void(const Reply&)>;

// ConnectionId names one connection of a server.
struct ConnectionId {
  std::uint32_t value = 0;
  friend bool operator==(ConnectionId, ConnectionId) = default;
};

// ServedCallId names one Call of one connection until it is answered. The answer to a Call whose connection ended is
// dropped.
struct ServedCallId {
  std::uint64_t value = 0;
  friend bool operator==(ServedCallId, ServedCallId) = default;
};

// ServedItem is a DDP-eligible argument that was pulled by RDMA Read: it stands behind the first `position` octets of
// ServedCall::args. The position has been checked against the binding. An argument that came inline is part of
// ServedCall::args.
struct ServedItem {
  std::size_t position = 0;
  Buffer data;
};

// ServedCall is one Call as its handler sees it. A handler may keep it and move it to any thread, but must give it back
// on the server's thread (Server::reply) in the end. Its views are valid until the Call is answered.
struct ServedCall {
  ServedCallId id;
  ConnectionId connection;
  std::uint32_t xid = 0;
  std::uint32_t program = 0, version = 0, procedure = 0;
  AuthView cred, verf;
  ConstBytes header;              // the RPC header as it came, up to the arguments
  ConstBytes args;                // XDR, without the items
  std::vector<ServedItem> items;  // in the order of their positions
  // For each Write chunk of the Call, in order: the largest item that the chunk takes. Empty for a chunk without
  // segments: the Call asks for that result inline.
  std::vector<std::optional<std::size_t>> result_capacities;
  std::string peer;  // address:port, for logs
  // The group of addresses that limits for one address count together: the peer's address, or its /64 if it is an IPv6
  // address.
  std::string peer_group;
  // Octets that Server::buffers() is sure to have for this Call's results if the service takes them within on_call.
  std::size_t result_room = 0;
  // Octets of results that the Reply can carry without a Write chunk, if its verifier is empty. The engine refuses a
  // longer Reply.
  std::size_t max_results = 0;

  // The capacity for the result at that place among the results that can have an item. Empty if the result goes inline.
  std::optional<std::size_t> result_item_capacity(std::size_t operation = 0) const {
    return operation < result_capacities.size() ? result_capacities[operation] : std::nullopt;
  }

  // The most octets that an item may have, in its Write chunk, or in the Reply behind `others` octets of other results.
  std::size_t max_item(std::size_t others, std::size_t operation = 0) const {
    constexpr std::size_t kXdrUnit = 4;
    const std::size_t inline_room = (max_results - std::min(max_results, others)) / kXdrUnit * kXdrUnit;
    return std::min(result_item_capacity(operation).value_or(inline_room), result_room);
  }

  // The memory behind the views: a Long Call's message, or the connection's Receive buffers.
  Buffer message;
  std::shared_ptr<const void> receives;
};

// Slice: octets of registered memory.
struct Slice {
  ConstBytes octets;
  std::uint32_t lkey = 0;
};

// ResultItem is a DDP-eligible result, left out of the results together with its padding. The engine goes by these
// numbers, and does not decode the results.
struct ResultItem {
  std::size_t position = 0;   // in octets of the results without any item
  std::size_t operation = 0;  // place among the results that can have an item: the number of its Write chunk
  Slice data;
};

// ServedReply answers one ServedCall. The engine sends an item through its Write chunk if there is one, else inline (or
// within the Reply chunk).
struct ServedReply {
  enum class Accept : std::uint32_t { kSuccess, kProgUnavail, kProgMismatch, kProcUnavail, kGarbageArgs, kSystemErr };
  Accept accept = Accept::kSuccess;
  std::vector<std::uint8_t> results;  // XDR, without the items
  std::vector<Slice> more_results;    // follows `results`, from registered memory
  std::vector<ResultItem> items;      // in ascending order of position and of operation
  std::vector<Buffer> buffers;        // memory of the slices; kept until the Reply was sent
  OpaqueAuth verf;                    // AUTH_NONE unless set
  // For gateways: the RPC header in octets, with the Call's XID, instead of accept and verf.
  std::vector<std::uint8_t> header;

  // add_item puts the first `len` octets of `buffer` behind the results as they are now.
  void add_item(Buffer buffer, std::size_t len);
  // skip_item: this result could have had an item, but has none.
  void skip_item() { ++next_operation_; }

 private:
  std::size_t next_operation_ = 0;
};

}  // namespace weft::rpcrdma
