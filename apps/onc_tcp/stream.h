#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "apps/onc_tcp/record_stream.h"
#include "base/time.h"
#include "rpcrdma/earned_time.h"

namespace weft::onc_tcp {

// StreamEvents are the callbacks to the owner of a Stream, from the io_context's thread. They may call any function of
// the Stream.
struct StreamEvents {
  std::function<void(Record)> on_record;
  // Called once, as the last event. `why` is one line. It is empty if the peer ended the connection between two
  // records.
  std::function<void(const std::string& why)> on_end;
  // A record begins to wait for memory (Stream::waits_for_room). May be empty.
  std::function<void()> on_short = {};
  // A record waits for its owner's turn (Stream::turn). Empty: records are handed out as they come.
  std::function<void()> on_due = {};
};

struct StreamConfig {
  RecordLimits record = {};
  // While more than high_water bytes wait to be sent, records' own memory included, nothing is received. Receiving goes
  // on once low_water bytes are left. So a peer that asks and does not read makes the Stream hold at most high_water
  // bytes and the owner's records under way. A Stream to a server does not use this: the server may have to send its
  // answers before it reads on. There receives_always is set, and the owner bounds the octets that it sends.
  std::size_t high_water = 4 << 20;
  std::size_t low_water = 1 << 20;
  bool receives_always = false;
  // The peer may owe the rest of a record, or the reading of sent bytes. That direction has to finish, or to move by
  // least_moved bytes, in this time.
  std::chrono::milliseconds stall_timeout{30000};
  std::size_t least_moved = 64 << 10;
};

// Pace judges whether owed data moves fast enough. Its owner passes the time.
class Pace {
 public:
  // Whether, for all of `timeout`, data was owed, `ends` did not change, and `moved` grew by less than `least`.
  bool is_late(TimePoint now, bool owed, std::uint64_t ends, std::uint64_t moved, std::chrono::milliseconds timeout,
               std::size_t least);

 private:
  std::optional<TimePoint> since_;
  std::uint64_t ends_ = 0, moved_ = 0;  // at that time
};

// MemoryPace judges a peer that owes data by the memory that it holds meanwhile. The more the peer holds, the faster it
// has to move (rpcrdma::EarnedTime). Its owner passes the time.
class MemoryPace {
 public:
  // The least is more than the round trip to most peers: the first bytes of a peer far away come no sooner.
  static constexpr rpcrdma::EarnedTime::Terms kTerms{.whole = std::chrono::seconds(4),
                                                     .least = std::chrono::milliseconds(100)};
  // Whether the peer has used up the time that it earned. It has 0.4 s, and earns four seconds by moving as many bytes
  // as it holds, but is never more than 0.4 s ahead. A peer that has not moved as many bytes as it holds has `given` at
  // first instead of 0.4 s. `owed`, `ends` and `moved` are as for Pace; held: bytes.
  bool is_slow(TimePoint now, bool owed, std::uint64_t ends, std::uint64_t moved, std::size_t held,
               Duration given = kTerms.grace);

 private:
  std::optional<rpcrdma::EarnedTime> time_;  // while data is owed
  std::uint64_t ends_ = 0, moved_ = 0;       // at the last question
};

// Stream is a TCP connection of RPC messages in both directions. It runs in the thread of its io_context only. Its
// owner passes the time: check.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // socket is connected. The pool outlives the Stream and its Records. client is as for RecordReceiver.
  Stream(boost::asio::ip::tcp::socket socket, rpcrdma::BufferPool& pool, const StreamConfig& config,
         std::shared_ptr<Room::Client> client = nullptr);

  // Starts the events. The Stream keeps itself alive until its end.
  void start(StreamEvents events);

  // The record is destroyed as soon as the socket has taken it, maybe before send returns. send never calls
  // StreamEvents itself.
  void send(std::unique_ptr<OutRecord> record);
  // The bytes that wait to be sent.
  std::size_t queued() const { return sender_.queued(); }

  // check ends a Stream whose peer is late. Call it several times in each StreamConfig::stall_timeout, and every 200 ms
  // for is_slow. given: as for MemoryPace.
  void check(TimePoint now, Duration given = MemoryPace::kTerms.grace);
  // At the last check: whether the peer moved too little for the record that it sends, or for those that wait to be
  // sent (MemoryPace).
  bool is_slow() const { return is_slow_; }
  // Whether a record waits for memory. The Stream asks for memory regularly; look_for_room makes it ask at once, unless
  // it is still in the Room's line.
  bool waits_for_room() const { return no_room_; }
  void look_for_room();

  // turn hands out the records that have come, at most so many, and returns their number. If more wait, on_due is
  // called again. Only for a Stream with on_due, and not from its callbacks. Until its turn the Stream does not read.
  std::size_t turn(std::size_t most);

  // pause stops on_record, and resume continues it. A paused Stream does not read, which holds the peer back.
  void pause();
  void resume();

  // close ends the Stream like an end by the peer: on_end comes with `why`. From then on no Buffer of the pool is held.
  void close(const std::string& why);
  bool is_closed() const { return closed_; }

 private:
  using error_code = boost::system::error_code;

  boost::asio::awaitable<void> receive_all();
  boost::asio::awaitable<void> send_all();
  // False at the end of the Stream.
  bool deliver();
  boost::asio::awaitable<void> wait_to_resume();
  // Whether the next record may be handed out now. Otherwise it waits for a turn.
  bool takes_turn();
  std::size_t weight() const;

  boost::asio::ip::tcp::socket socket_;
  StreamConfig config_;
  std::shared_ptr<const StreamEvents> events_;  // a running callback holds them, since it may close
  RecordReceiver receiver_;
  RecordSender sender_;
  boost::asio::steady_timer resumed_;  // cancelled when reading may go on
  bool paused_ = false;
  bool due_ = false;           // a record waits for a turn
  std::size_t turn_left_ = 0;  // records that may still be handed out in this turn
  bool no_room_ = false;       // the pool had no Buffer for the next bytes
  bool sending_ = false;
  bool full_ = false;  // was above high_water, and not yet down to low_water
  bool closed_ = false;
  bool is_slow_ = false;
  std::uint64_t received_ = 0, sent_ = 0;               // bytes
  std::uint64_t num_records_ = 0, num_times_sent_ = 0;  // records received; how often the queue became empty
  Pace receive_pace_, send_pace_;
  MemoryPace record_pace_, answer_pace_;
};

}  // namespace weft::onc_tcp
