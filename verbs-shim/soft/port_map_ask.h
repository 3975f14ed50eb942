#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/time.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/iwpm/mapper.h"

namespace weft::verbs::soft {

// PortMapAsk asks the mapper beside a peer for one connection, from a socket of its own. In one loop's thread.
class PortMapAsk {
 public:
  // peer: the address that the TCP socket `tcp` is to connect to. A socket without a port is bound to a port of the
  // system's choice, because the Request names the port. Null if no question can be sent: a warning says so, and the
  // connection goes to the port as it is.
  static std::unique_ptr<PortMapAsk> open(const SoftConfig& config, int tcp, const sockaddr_storage& peer);

  // Sends the first Request. The functions below may be called afterwards.
  void begin(TimePoint now);
  int fd() const { return fd_.get(); }
  void on_ready();
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const { return asker_->next_timeout(); }

  // Whether asking has ended. Then target() returns the address to connect to and logs the result.
  bool ended() const { return asker_->answer().has_value(); }
  sockaddr_storage target() const;

 private:
  PortMapAsk(const SoftConfig& config, Fd fd, const sockaddr_storage& peer);
  void send_all();

  const SoftConfig::PortMap config_;
  const Log log_;
  Fd fd_;
  const sockaddr_storage peer_;
  iwpm::Asker::Question question_;
  std::optional<iwpm::Asker> asker_;
};

}  // namespace weft::verbs::soft
