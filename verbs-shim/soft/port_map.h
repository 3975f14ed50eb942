#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/iwpm/mapper.h"
#include "verbs-shim/soft/poller.h"
#include "verbs-shim/soft/unique_fd.h"

// The sockets of the iWARP port mapper (iwpm/ has the protocol).
namespace weft::verbs::soft {

class Loop;

// PortMapAsk asks the mapper beside a peer for one connection, from a socket of its own. In one loop's thread.
class PortMapAsk {
 public:
  // peer: whom the TCP socket `tcp` is to connect to. It is bound to a port of the system's choice where it has none,
  // as the Request names it. Null where no question can be sent, which a warning tells: the connection is then made to the port as it is.
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

// PortMapAnswers answers for a device's listening ids, from a socket for each address that they listen on. All of it in
// the loop's thread. Where the UDP port is taken, by iwpmd as a rule, it warns and does without.
class PortMapAnswers {
 public:
  explicit PortMapAnswers(Loop& loop) : loop_(loop) {}
  // An id listens on this address, which has a port; it does so no more.
  void add(const sockaddr_storage& listening);
  void remove(const sockaddr_storage& listening);
  // Nobody listens any more.
  void clear();

  // PortMapSocket is what the Poller knows.
  struct PortMapSocket final : Source {
    PortMapSocket(PortMapAnswers& answers, UniqueFd socket, const sockaddr_storage& bound, unsigned per_second);
    std::size_t on_ready(TimePoint now) { return owner.on_ready(*this, now); }

    PortMapAnswers& owner;
    const UniqueFd fd;
    const sockaddr_storage local;
    iwpm::Answerer answerer;
    bool warned = false;  // of a flood
  };

 private:
  std::size_t on_ready(PortMapSocket& socket, TimePoint now);
  void log(ConstBytes received, ConstBytes reply, const sockaddr_storage& from, TimePoint now) const;
  bool covered(const sockaddr_storage& listening) const;
  void open_for(const sockaddr_storage& listening);
  std::optional<iwpm::Endpoint> lookup(iwpm::IpVersion ip, const iwpm::Endpoint& asked) const;

  Loop& loop_;
  std::vector<sockaddr_storage> listening_;
  std::vector<std::unique_ptr<PortMapSocket>> sockets_;
};

}  // namespace weft::verbs::soft
