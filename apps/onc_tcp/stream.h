#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "apps/onc_tcp/record_stream.h"

namespace weft::onc_tcp {

// StreamEvents is what the owner of a Stream hears, from the io_context's thread. It may call any of the Stream's
// functions from there.
struct StreamEvents {
  std::function<void(Record)> on_record;
  // What waited to be sent is below StreamConfig::low_water again, after it was above.
  std::function<void()> on_drained;
  // Once, and nothing after it. `why` is one line, empty where the peer ended the connection between two records.
  std::function<void(const std::string& why)> on_end;
};

struct StreamConfig {
  std::size_t max_record = 2 << 20;  // octets
  std::size_t low_water = 1 << 20;   // octets
  // How long the rest of a record may be awaited, or what is sent may find no way out.
  std::chrono::milliseconds stall_timeout{30000};
};

// Stream is a TCP connection of RPC messages, both ways. One thread, that of its io_context.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // socket is connected. The pool outlives the Stream and its Records.
  Stream(boost::asio::ip::tcp::socket socket, rpcrdma::BufferPool& pool, const StreamConfig& config);

  // From here on events come. The Stream keeps itself alive until its end.
  void start(StreamEvents events);

  // The record goes as soon as the socket has taken it, maybe before send returns; what is in StreamEvents is never
  // called from within send.
  void send(std::unique_ptr<OutRecord> record);
  std::size_t queued() const { return sender_.queued(); }

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
  boost::asio::awaitable<void> watch();
  // False at the stream's end.
  bool deliver();
  boost::asio::awaitable<void> wait_to_resume();

  boost::asio::ip::tcp::socket socket_;
  StreamConfig config_;
  std::shared_ptr<const StreamEvents> events_;  // held while one of them runs: it may close
  RecordReceiver receiver_;
  RecordSender sender_;
  boost::asio::steady_timer resumed_;  // cancelled when reading may go on
  boost::asio::steady_timer watch_;
  bool paused_ = false;
  bool no_room_ = false;  // the pool had no Buffer for what comes
  bool sending_ = false;
  bool above_ = false;  // low_water
  bool closed_ = false;
  std::uint64_t progress_ = 0;  // octets received and sent
};

}  // namespace weft::onc_tcp
