#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rdmap/observer.h"
#include "verbs-shim/soft/frame_cutter.h"
#include "verbs-shim/soft/packet_head.h"
#include "verbs-shim/soft/trace_file.h"

namespace weft::verbs::soft {

// StreamTrace writes the traffic of one Stream to a trace: TCP's handshake, a packet for each MPA frame, and the end of
// the connection. The IP and TCP headers are made here, since the socket shows none. What the Stream says of itself
// becomes a comment of the packet that came or left last: what was established, work requests that ended, why the
// connection ends. The first packet of a message that was cut has a comment that
// says so.
//
// The last packet of a turn waits for its comments until the next packet, or end_turn.
class StreamTrace final : public rdmap::Observer {
 public:
  // The longest comment, in octets. More of it is left out, and the comment says so.
  static constexpr std::size_t kMaxComment = 1024;

  // client: whether this end made the TCP connection.
  StreamTrace(std::shared_ptr<TraceFile> file, const sockaddr_storage& local, const sockaddr_storage& peer,
              bool client);
  ~StreamTrace();
  StreamTrace(const StreamTrace&) = delete;
  StreamTrace& operator=(const StreamTrace&) = delete;

  void on_rx(std::span<const MutBytes> buffers, std::size_t n, TimePoint now) override;
  void on_tx(std::span<const ConstBytes> buffers, std::size_t n, TimePoint now) override;
  void on_post(const rdmap::SendWr&) override {}
  void on_failure(const rdmap::Closed& why) override;
  void on_event(const rdmap::Event& event) override;

  // The driver's turn is over: no comment comes before the next packet.
  void end_turn() { write(); }

 private:
  enum class Way : std::uint8_t { kOut, kIn };

  // Packet: one that is not written yet.
  struct Packet {
    Way way = Way::kOut;
    std::uint8_t flags = 0;
    std::vector<std::uint8_t> kept;
    std::size_t len = 0;
    TimePoint time;
    std::string comment;
    bool is_cut = false;
    bool waits = false;
  };

  template <typename Views>
  void take(Way way, const Views& buffers, std::size_t n);
  void put(Way way, std::uint8_t flags, std::vector<std::uint8_t>& kept, std::size_t len, bool is_cut);
  void comment(std::string_view text);
  std::string in_words(const std::string& advice) const;
  void write();
  std::uint32_t& next_seq(Way way) { return way == Way::kOut ? seq_out_ : seq_in_; }

  const std::shared_ptr<TraceFile> file_;
  const sockaddr_storage local_, peer_;
  TimePoint now_;
  std::uint32_t seq_out_ = 0, seq_in_ = 0;
  FrameCutter out_, in_;
  Packet last_;
  std::string terminate_;  // about the Terminate that is to leave next
  std::string reason_;
};

}  // namespace weft::verbs::soft
