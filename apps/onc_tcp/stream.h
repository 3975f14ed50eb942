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

namespace weft::onc_tcp {

// StreamEvents is what the owner of a Stream hears, from the io_context's thread. It may call any of the Stream's
// functions from there.
struct StreamEvents {
  std::function<void(Record)> on_record;
  // Once, and nothing after it. `why` is one line, empty where the peer ended the connection between two records.
  std::function<void(const std::string& why)> on_end;
};

struct StreamConfig {
  RecordLimits record = {};
  // While more than high_water bytes wait to be sent, records' own memory included, nothing is received; once low_water
  // are left it goes on. A peer that asks and does not read makes the Stream hold no more than that and what the owner
  // has under way. Not for a Stream to a server, which may have to send its answers before it reads on: there
  // receives_always, and the owner bounds what it sends.
  std::size_t high_water = 4 << 20;
  std::size_t low_water = 1 << 20;
  bool receives_always = false;
  // A direction in which something is owed (the rest of a record; the reading of what is sent) has to come to its end,
  // or least_moved bytes further, in this time.
  std::chrono::milliseconds stall_timeout{30000};
  std::size_t least_moved = 64 << 10;
};

// Pace tells whether something that is owed moves fast enough. Its owner says what time it is.
class Pace {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Whether for `timeout` something was owed all the time, `ends` stayed as it was and `moved` grew by less than
  // `least`.
  bool is_late(TimePoint now, bool owed, std::uint64_t ends, std::uint64_t moved, std::chrono::milliseconds timeout,
               std::size_t least);

 private:
  std::optional<TimePoint> since_;
  std::uint64_t ends_ = 0, moved_ = 0;  // at that time
};

// Stream is a TCP connection of RPC messages, both ways. One thread, that of its io_context. Time is its owner's:
// check.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  using TimePoint = Pace::TimePoint;

  // socket is connected. The pool outlives the Stream and its Records. client: as for RecordReceiver.
  Stream(boost::asio::ip::tcp::socket socket, rpcrdma::BufferPool& pool, const StreamConfig& config,
         std::shared_ptr<Room::Client> client = nullptr);

  // From here on events come. The Stream keeps itself alive until its end.
  void start(StreamEvents events);

  // The record goes as soon as the socket has taken it, maybe before send returns; what is in StreamEvents is never
  // called from within send.
  void send(std::unique_ptr<OutRecord> record);
  // Bytes that wait to be sent.
  std::size_t queued() const { return sender_.queued(); }

  // check ends a Stream whose peer is late (StreamConfig::stall_timeout). To be called several times in such a time.
  void check(TimePoint now);
  // As of the last check: something was owed for a second or longer, and less than kBrisk bytes moved.
  bool is_slow() const { return is_slow_; }
  // Whether a record waits for memory. It is asked for again and again, and by look_for_room at once.
  bool waits_for_room() const { return no_room_; }
  void look_for_room();

  static constexpr std::chrono::milliseconds kSlowAfter{1000};
  static constexpr std::size_t kBrisk = 256 << 10;

  // pause stops on_record; resume goes on. Not to read is how the peer is held back.
  void pause();
  void resume();

  // close ends it as the peer would; on_end comes with `why`. From then on no Buffer of the pool is held.
  void close(const std::string& why);
  bool is_closed() const { return closed_; }

 private:
  using error_code = boost::system::error_code;

  boost::asio::awaitable<void> receive_all();
  boost::asio::awaitable<void> send_all();
  // False at the stream's end.
  bool deliver();
  boost::asio::awaitable<void> wait_to_resume();
  std::size_t weight() const;

  boost::asio::ip::tcp::socket socket_;
  StreamConfig config_;
  std::shared_ptr<const StreamEvents> events_;  // held while one of them runs: it may close
  RecordReceiver receiver_;
  RecordSender sender_;
  boost::asio::steady_timer resumed_;  // cancelled when reading may go on
  bool paused_ = false;
  bool no_room_ = false;  // the pool had no Buffer for what comes
  bool sending_ = false;
  bool full_ = false;  // above high_water, and not below low_water since
  bool closed_ = false;
  bool is_slow_ = false;
  std::uint64_t received_ = 0, sent_ = 0;               // bytes
  std::uint64_t num_records_ = 0, num_times_sent_ = 0;  // records received; how often nothing was left to be sent
  Pace receive_pace_, send_pace_, pace_;
};

}  // namespace weft::onc_tcp
