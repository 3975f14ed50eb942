#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>

#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/iwpm/mapper.h"
#include "verbs-shim/soft/unique_fd.h"

namespace weft::verbs::soft {

// PortMapAsk asks the mapper beside a peer for one connection, from a socket of its own. In one loop's thread.
class PortMapAsk {
 public:
  // peer: whom the TCP socket `tcp` is to connect to. It is bound to a port of the system's choice where it has none,
  // as the Request names it. Null where no question can be sent, which a warning tells: the connection is then made to
  // the port as it is.
  static std::unique_ptr<PortMapAsk> open(const SoftConfig& config, int tcp, const sockaddr_storage& peer);

  // Sends the first Request. Only then the rest may be called.
  void begin(TimePoint now);
  int fd() const { return fd_.get(); }
  void on_ready();
  void on_timeout(TimePoint now);
  std::optional<TimePoint> next_timeout() const { return asker_->next_timeout(); }

  // Whether it has come to an end, and then: where to connect to. Logs what it came to.
  bool ended() const { return asker_->answer().has_value(); }
  sockaddr_storage target() const;

 private:
  PortMapAsk(const SoftConfig& config, UniqueFd fd, const sockaddr_storage& peer);
  void send_all();

  const SoftConfig::PortMap config_;
  const Log log_;
  UniqueFd fd_;
  const sockaddr_storage peer_;
  iwpm::Asker::Question question_;
  std::optional<iwpm::Asker> asker_;
};

}  // namespace weft::verbs::soft
