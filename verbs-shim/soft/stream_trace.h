#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "rdmap/observer.h"
#include "verbs-shim/soft/frame_cutter.h"
#include "verbs-shim/soft/trace_file.h"

namespace weft::verbs::soft {

// StreamTrace writes the traffic of one Stream to a trace: TCP's handshake, a packet for each MPA frame, and the end of
// the connection with its reason as a comment. The IP and TCP headers are made here, since the socket shows none.
class StreamTrace final : public rdmap::Observer {
 public:
  // client: whether this end made the TCP connection.
  StreamTrace(std::shared_ptr<TraceFile> file, const sockaddr_storage& local, const sockaddr_storage& peer, bool client,
              TimePoint now);
  ~StreamTrace();
  StreamTrace(const StreamTrace&) = delete;
  StreamTrace& operator=(const StreamTrace&) = delete;

  void on_rx(std::span<const MutBytes> buffers, std::size_t n, TimePoint now) override;
  void on_tx(std::span<const ConstBytes> buffers, std::size_t n, TimePoint now) override;
  void on_event(const rdmap::Event& event) override;

 private:
  enum class Way : std::uint8_t { kOut, kIn };

  template <typename Views>
  void take(Way way, const Views& buffers, std::size_t n, TimePoint now);
  void put(Way way, std::uint8_t flags, ConstBytes kept, std::size_t len, std::string_view comment = {});
  std::uint32_t& next_seq(Way way) { return way == Way::kOut ? seq_out_ : seq_in_; }

  const std::shared_ptr<TraceFile> file_;
  const sockaddr_storage local_, peer_;
  TimePoint now_;
  std::uint32_t seq_out_ = 0, seq_in_ = 0;
  FrameCutter out_, in_;
  std::string reason_;
};

}  // namespace weft::verbs::soft
