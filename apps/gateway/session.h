#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "apps/gateway/backchannel.h"
#include "apps/gateway/to_rdma.h"
#include "base/fair_line.h"
#include "base/ledger.h"
#include "base/time.h"
#include "rpcrdma/call_observer.h"
#include "rpcrdma/connection_order.h"
#include "rpcrdma/rpc_message.h"
#include "verbs-shim/api/log_budget.h"

namespace weft::gateway {

class Session;

// SharedBySessions is the shared part of the Sessions of one ToRdma. It outlives them.
struct SharedBySessions {
  const ToRdmaConfig& config;
  verbs::Device& device;
  rpcrdma::BufferPool& buffers;
  // There are three Rooms. Calls and Replies have one each, so Calls that wait for room for their Replies never block a
  // Reply that would give room back. Long Replies without an item have the third one: listings of directories, which
  // may wait for the server's disk for long. So their Calls keep no READ waiting.
  onc_tcp::Room &calls, &replies, &listings;
  verbs::LogBudget& log;
  verbs::CompChannel& events;  // of all RDMA connections
  FairLine<Session*>& turns;   // those with records that have come, by number and address
  rpcrdma::CallObserver* observer = nullptr;
  std::unordered_map<const verbs::Cq*, Session*> by_cq = {};
  std::vector<Session*> busy = {};      // those that need each turn (Session::is_busy)
  std::vector<Session*> changing = {};  // those whose seen_now may be another one than before
  std::vector<Session*> ended = {};     // those that are over
};

// Session is one TCP client of a ToRdma with its RDMA connection. The first Call makes the RDMA connection, so a silent
// client costs only a socket. After ToRdmaConfig::rest without a Call the RDMA connection ends, unless the server may
// call the client back over it. The client's next Call makes another one.
class Session {
 public:
  // id: no other Session has it. place: its entry among all clients, of which it takes one place. Its address is the
  // client's address for limits (base/peer_group.h).
  Session(SharedBySessions& shared, rpcrdma::ConnectionId id, std::string peer, Ledger::Client place, TimePoint now);
  ~Session();

  // Takes over a connection.
  void start(boost::asio::ip::tcp::socket socket);
  // The device is driven by the caller.
  std::size_t process(TimePoint now);
  // Takes at most so many records that its client has sent, and returns their number. For its turn in
  // SharedBySessions::turns.
  std::size_t take_records(std::size_t most) { return stream_->turn(most); }
  // Its RDMA connection has news: process is due.
  void on_event() { wake(); }
  // Whether process has something to do in each turn: Calls are under way, or wait. Otherwise it is enough to call it
  // after on_event, and now and then.
  bool is_busy() const;
  // Takes it out of SharedBySessions::busy, which the caller does.
  void rest() { listed_ = false; }
  // Whether it stays in SharedBySessions::changing. The caller takes it out if not.
  bool changes_on() { return changes_ = listed_; }
  std::optional<TimePoint> next_timeout() const;
  // Looks for a late client. Call it every ToRdma::kCheckEvery, or more often.
  void check(TimePoint now);
  // Whether its RDMA connection may end, because it had rested for ToRdmaConfig::rest at the last check.
  bool may_leave_server() const;
  // Ends its RDMA connection. Not from a callback.
  void leave_server();
  // Whether it is to be destroyed, but not from a callback.
  bool is_over() const { return over_; }

  rpcrdma::ConnectionId id() const { return id_; }
  const std::string& address() const { return place_.address(); }
  // What decides whether it gives way. It was used at the last answer, or else when it called first, or else when the
  // client arrived. It is new until the server answered a Call of it, but not in the second after that first Call.
  rpcrdma::ConnectionOrder::Seen seen_now(TimePoint now) const;
  // Since when it waits for memory of this Room that other clients hold.
  std::optional<TimePoint> waits_since(const onc_tcp::Room& room) const;
  // The bytes of this Room that it holds from other clients as a slow client: 0 if it is not slow or holds little.
  std::size_t held_slowly(const onc_tcp::Room& room) const;
  // Ends it in favour of other clients.
  void give_way(const std::string& why) { end(why, rpcrdma::EndReason::kGaveWay); }
  // Of its RDMA connection and its Calls. `credits` is 0: TCP has none.
  rpcrdma::ConnectionStatistics statistics() const;
  rpcrdma::EndReason end_reason() const { return end_reason_; }  // once it is over
  std::uint64_t num_calls() const { return num_calls_; }
  std::uint64_t num_placed() const { return num_placed_; }

 private:
  struct Call;
  struct ReplyRecord;
  const onc_tcp::Room::Client& client_of(const onc_tcp::Room& room) const;
  // The time that onc_tcp::MemoryPace gives at first.
  Duration given_time() const;
  // Puts it into SharedBySessions::busy, and into `changing`.
  void wake();
  using Calls = std::list<Call>;

  void end(const std::string& why, rpcrdma::EndReason reason = rpcrdma::EndReason::kFailed);
  bool connect();
  // Puts it into SharedBySessions::turns.
  void await_turn();
  // Brings SharedBySessions::by_cq up to date.
  void watch();
  void on_record(onc_tcp::Record record);
  // Arrived is a Call that was not passed on or answered yet.
  struct Arrived {
    onc_tcp::Record record;
    std::uint64_t mark = 0;          // the observer's, of its arrival
    onc_tcp::Room::Claim room = {};  // for its Reply
  };
  void on_call(Arrived arrived);
  // Whether a Call of it waits for memory, or a Reply does.
  bool waits_for_room() const;
  void tell_answer(std::uint64_t mark, rpcrdma::CallOutcome outcome, const rpcrdma::CallSpec* served);
  // False if there is no room for the Reply. The Call is then unchanged, and has to be passed on later, with its
  // `room`.
  bool pass_call(Call& call, const rpcrdma::CallHeaderView& header, const rpcrdma::Binding& binding, ConstBytes args);
  // Stops reading the client while too many of its Calls are under way, or while one waits for a Buffer.
  void hold_back();
  void take_item_out(Call& call, const rpcrdma::Binding& binding, ConstBytes args);
  bool prepare_results(Call& call, const rpcrdma::Binding& binding, ConstBytes args);
  // Takes room for a Reply of `len` bytes, of which an item has `item`. False if there is none now.
  bool take_room(onc_tcp::Room::Claim& room, std::size_t len, std::size_t item) const;
  // Room::num_changes of both Rooms for Replies.
  std::uint64_t num_reply_changes() const;
  void on_reply(Calls::iterator at, const rpcrdma::Reply& reply);
  void send_reply(Call& call, const rpcrdma::Reply& reply);
  // Answers a Call that is not passed on, or lets it wait for room.
  void refuse(Arrived arrived, rpcrdma::CallOutcome outcome, std::unique_ptr<OwnedRecord> answer);
  void block(Arrived arrived);
  // Answers a Call that got no Reply with SYSTEM_ERR.
  void fail(Call& call);
  void refuse_unsent(Call& call, const std::string& why);
  // room: no smaller than kOwnAnswer.
  void send_own(std::unique_ptr<OwnedRecord> record, onc_tcp::Room::Claim room);

  SharedBySessions& shared_;
  const rpcrdma::ConnectionId id_;
  const ToRdmaConfig& config_;
  std::string peer_;
  Ledger::Client place_;
  Lease lease_;  // of one place
  std::shared_ptr<onc_tcp::Room::Client> room_for_calls_, room_for_replies_, room_for_listings_;
  TimePoint now_;
  TimePoint used_at_;
  bool used_ = false;
  std::optional<TimePoint> waits_since_;
  std::shared_ptr<onc_tcp::Stream> stream_;
  Calls calls_;  // their memory outlives client_'s use of it
  CallsToTcp callbacks_;
  std::unique_ptr<rpcrdma::Client> client_;
  const verbs::Cq* watched_ = nullptr;  // client_'s, in SharedBySessions::by_cq
  verbs::QpCounters past_;              // of the RDMA connections before
  bool may_be_called_back_ = false;     // over client_'s connection, which then stays
  bool listed_ = false;                 // in SharedBySessions::busy
  bool changes_ = false;                // in SharedBySessions::changing
  bool over_ = false;
  rpcrdma::EndReason end_reason_ = rpcrdma::EndReason::kFailed;
  bool held_back_ = false;
  std::optional<Arrived> blocked_;  // without room for its Reply
  // Room::num_changes at the last request for room.
  std::uint64_t call_changes_seen_ = 0, reply_changes_seen_ = 0;
  std::vector<rpcrdma::EligibleItem> arguments_;
  std::vector<std::optional<rpcrdma::EligibleItem>> results_;
  rpcrdma::ReplyBound bound_;
  std::uint64_t num_calls_ = 0, num_placed_ = 0;
  std::size_t num_once_ = 0;  // Calls under way that must not run twice
};

}  // namespace weft::gateway
