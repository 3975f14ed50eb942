#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/fleet.h"
#include "verbs-shim/soft/id_share.h"
#include "verbs-shim/soft/listener.h"

namespace weft::verbs::soft {

// SoftCmId and its connection belong to one loop. The handle in share_ names the connection. share_ is used only within
// Loop::run; the other members are the caller's alone.
class SoftCmId final : public CmId {
 public:
  SoftCmId(Fleet& fleet, Loop& loop, std::shared_ptr<EventQueue> queue);
  ~SoftCmId() override;

  Status bind_addr(const sockaddr_storage& addr) override;
  Status listen(int backlog) override;
  Status resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds timeout) override;
  Status resolve_route(std::chrono::milliseconds timeout) override;
  Result<std::unique_ptr<Qp>> create_qp(Pd& pd, const QpInitAttr& attr) override;
  Status connect(const ConnParam& param) override;
  Status accept(const ConnParam& param) override;
  Status reject(std::span<const std::uint8_t> private_data) override;
  Status disconnect() override;
  sockaddr_storage local_addr() const override;
  sockaddr_storage peer_addr() const override;

  // ---- sockets that existed before MPA (adopt.cc)
  Status connect_socket(Fd fd, const ConnParam& param, ConstBytes received);
  Status accept_socket(Fd fd, ConstBytes received);
  Result<ReleasedSocket> release_socket();

 private:
  enum class State : std::uint8_t { kIdle, kBound, kListening, kAddrResolved, kRouteResolved, kConnected, kRequested };

  Status check_device() const;
  Status check_qp() const;
  Status check_connect(const ConnParam& param) const;
  Status check_private_data(std::size_t len, std::uint8_t revision) const;
  // answer(connection) answers its connect request.
  template <typename F>
  Status answer(std::size_t private_data_len, F answer);
  void open_listeners(std::size_t backlog);
  void close_listeners();
  // on: the port mapper's answers name this listening id.
  void set_answers(bool on);
  // In the thread of `loop`: makes an event for the connect request of its connection `who`, with a new id.
  void deliver(Loop& loop, Handle who);
  // Hands a socket to a connection of this id as initiator. begin(connection) enters the socket in epoll. If that
  // fails, errno says why.
  Status start(Fd& fd, bool adopted, const ConnParam& param, absl::FunctionRef<bool(Connection&)> begin);

  Fleet& fleet_;
  Loop& loop_;
  State state_ = State::kIdle;
  Fd fd_;                                             // the bound socket, until it listens or connects
  std::vector<std::unique_ptr<Listener>> listeners_;  // one in each loop, in their order
  bool answers_ = false;                              // PortMapAnswers knows of this listening id
  IdShare share_;
};

}  // namespace weft::verbs::soft
