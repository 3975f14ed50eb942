#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "verbs-shim/soft/iwpm/mapper.h"
#include "verbs-shim/soft/loop_services.h"
#include "verbs-shim/soft/source.h"

namespace weft::verbs::soft {

// PortMapAnswers answers for a device's listening ids, from a socket for each address that they listen on. It is used
// in the loop's thread. If the UDP port is taken, as a rule by iwpmd, it warns and does not answer there.
class PortMapAnswers {
 public:
  explicit PortMapAnswers(LoopServices& loop) : loop_(loop) {}
  // An id listens on this address (add), or no longer does (remove). The address has a port.
  void add(const sockaddr_storage& listening);
  void remove(const sockaddr_storage& listening);
  // No id listens any more.
  void clear();

  // PortMapSocket is the Source for the Poller.
  struct PortMapSocket final : Source {
    PortMapSocket(PortMapAnswers& answers, Fd socket, const sockaddr_storage& bound, unsigned per_second);
    std::size_t on_ready(std::uint32_t, TimePoint now) override { return owner.on_ready(*this, now); }

    PortMapAnswers& owner;
    const Fd fd;
    const sockaddr_storage local;
    iwpm::Answerer answerer;
    bool warned = false;  // a warning told of a flood
  };

 private:
  std::size_t on_ready(PortMapSocket& socket, TimePoint now);
  void log(ConstBytes received, ConstBytes reply, const sockaddr_storage& from, TimePoint now) const;
  bool covered(const sockaddr_storage& listening) const;
  void open_for(const sockaddr_storage& listening);
  std::optional<iwpm::Endpoint> lookup(iwpm::IpVersion ip, const iwpm::Endpoint& asked) const;

  LoopServices& loop_;
  std::vector<sockaddr_storage> listening_;
  std::vector<std::unique_ptr<PortMapSocket>> sockets_;
};

}  // namespace weft::verbs::soft
