#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ledger.h"
#include "base/sip_hash.h"
#include "base/time.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/policies.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// RequestKey identifies a Call that is sent again. It contains no port: a client over RDMA cannot choose the port that
// it comes back from.
struct RequestKey {
  std::string client;  // its address
  std::uint32_t xid = 0;
  std::uint32_t program = 0, version = 0, procedure = 0;
  std::uint64_t length = 0;  // octets of the arguments, items included
  std::uint64_t hash = 0;    // of the arguments and the credential, under a secret of the server
  auto operator<=>(const RequestKey&) const = default;
};

// CallPrint: what a Call with chunks repeats if its client sends it again. An XID alone would let one client of an
// address have the Calls of another refused.
struct CallPrint {
  std::uint32_t xid = 0;
  std::uint64_t hash = 0;  // print_of; 0 without chunks
  friend bool operator==(const CallPrint&, const CallPrint&) = default;
};

// KeptItem: a DDP-eligible argument of a Call that stands outside the other arguments.
struct KeptItem {
  std::size_t position = 0;  // in octets of the arguments without items
  ConstBytes data;
};

// KeptReply: a ServedReply in memory of its own.
struct KeptReply {
  struct Item {
    std::size_t position = 0;
    std::size_t operation = 0;
    std::vector<std::uint8_t> data;
  };
  ServedReply::Accept accept = ServedReply::Accept::kSuccess;
  std::vector<std::uint8_t> results;
  std::vector<Item> items;
  OpaqueAuth verf;
  std::vector<std::uint8_t> header;

  static KeptReply of(const ServedReply& reply);
  // A ServedReply to send again. Empty if there is no Buffer for an item.
  std::optional<ServedReply> revive(BufferPool& pool) const;
  std::size_t octets() const;
};

// DuplicateRequestCache is a server's duplicate-request cache: if a client sends a Call again after a lost connection,
// and the Call must not run twice, the cache gives it the first answer. All connections of a server share it. A
// peer_group has at most half as many entries as it leaves free. Beyond them its own oldest Reply goes. A group without
// Replies takes the place of the oldest Reply, or else of the oldest running Call, of the group that has most. A Call
// that is forgotten so, while it runs, would run twice if it came again. The cache also knows the Calls of any program
// that ended a connection by a bad handle. A value without I/O; its clock is on_time.
class DuplicateRequestCache {
 public:
  enum class Verdict : std::uint8_t {
    kRun,     // the Call is new; on_reply must follow
    kDrop,    // the Call runs for this connection: its answer suffices
    kWait,    // the Call runs for another connection; on_reply will name this one
    kAnswer,  // the Call has run: find has the Reply
  };

  // secret: of the hashes in keys. A peer that knows it can make Calls that get the answers of other Calls.
  explicit DuplicateRequestCache(const DuplicateRequestLimits& config, const SipHash::Key& secret = {});

  // The key of a Call, the same whether its items come inline or by Read chunk.
  RequestKey key_of(const std::string& client, std::uint32_t xid, const CallHeaderView& rpc, ConstBytes args,
                    std::span<const KeptItem> items) const;

  // print_of hashes a Call with chunks, under the secret: the lengths of its chunks, and of an inline Call (rpc is not
  // null) its procedure, its credential and the first 4,096 octets of its arguments. Handles and offsets differ on the
  // next connection. With RPCSEC_GSS the credential and the arguments do, too.
  std::uint64_t print_of(const ChunkLists& lists, const CallHeaderView* rpc, ConstBytes args) const;

  // on_time drops entries that are too old or beyond the limits. Pointers to Replies are valid until then.
  void on_time(TimePoint now);

  // group: the peer_group of the client.
  Verdict on_call(const RequestKey& key, const std::string& group, ServedCallId id);
  const KeptReply* find(const RequestKey& key) const;

  // Ended: a Reply, and the Calls that wait for it besides the Call that ran.
  struct Ended {
    const KeptReply* reply = nullptr;
    std::vector<ServedCallId> waiting;
  };
  // on_reply keeps the answer to a Call with Verdict::kRun, whether or not its connection still exists.
  Ended on_reply(ServedCallId id, const ServedReply& reply);
  // on_abandoned forgets a Call that will not be answered. It returns the Calls that wait for the answer.
  std::vector<ServedCallId> on_abandoned(ServedCallId id);
  // Whether a Call is running whose Reply will be kept.
  bool is_running(ServedCallId id) const { return running_.contains(id.value); }

  // on_fatal: a Call ended its connection, because one of its handles names nothing (R1-5.5.3-03). If too many of these
  // Calls are known, the peer_group that has most of them gives up its oldest.
  void on_fatal(const std::string& client, const std::string& group, const CallPrint& call);
  bool was_fatal(const std::string& client, const CallPrint& call) const;

  std::size_t size() const { return entries_.size(); }
  std::size_t octets() const { return octets_.held(); }

 private:
  struct Entry;
  using Entries = std::list<Entry>;
  struct Fatal;
  using Fatals = std::list<Fatal>;
  // Group: what the clients of one peer_group have here. It exists as long as they have something.
  struct Group {
    Ledger::Client places, octets, prints;
    // Each has the oldest first.
    std::list<Entries::iterator> running, done;
    std::list<Fatals::iterator> fatal;

    // The entry that goes first; null if there is none, or other Calls wait for its Reply.
    const Entries::iterator* gives_up() const;
  };
  using Groups = std::map<std::string, Group>;
  struct Entry {
    RequestKey key;
    Groups::iterator group;
    ServedCallId runner;
    bool done = false;
    std::list<Entries::iterator>::iterator in_group;  // in its `done` or in its `running`
    KeptReply reply;
    std::vector<ServedCallId> waiting;
    TimePoint since{};
    Lease place, octets;
  };
  struct Fatal {
    std::string client;
    Groups::iterator group;
    CallPrint call;
    TimePoint since{};
    Lease place;
  };

  Groups::iterator group_of(const std::string& name);
  void forget_if_empty(Groups::iterator group);
  void drop(Entries::iterator entry);
  void drop_oldest_print(Groups::iterator group);
  // Makes room for one more entry of this group. False: it has most itself, and no Reply.
  bool make_room(const std::string& group);

  DuplicateRequestLimits config_;
  SipHash::Key secret_;
  TimePoint now_{};
  Ledger places_, octets_, prints_;
  Entries entries_;  // oldest first
  Groups groups_;
  std::map<RequestKey, Entries::iterator> by_key_;
  std::unordered_map<std::uint64_t, Entries::iterator> running_;  // by ServedCallId
  Fatals fatal_;                                                  // oldest first
};

}  // namespace weft::rpcrdma
