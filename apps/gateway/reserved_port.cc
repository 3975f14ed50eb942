#include "apps/gateway/reserved_port.h"

#include <unistd.h>

namespace weft::gateway {

void bind_reserved_port(boost::asio::ip::tcp::socket& socket) {
  using boost::asio::ip::tcp;
  // bindresvport(3) takes ports from this range.
  constexpr int kFirst = 600, kLast = 1023, kNum = kLast - kFirst + 1;
  static int next = ::getpid() % kNum;
  boost::system::error_code error;
  const tcp::endpoint local = socket.local_endpoint(error);
  const tcp protocol = local.address().is_v6() ? tcp::v6() : tcp::v4();
  for (int i = 0; i < kNum; ++i) {
    next = (next + 1) % kNum;
    socket.bind(tcp::endpoint(protocol, static_cast<std::uint16_t>(kFirst + next)), error);
    if (!error || error == boost::asio::error::access_denied) return;
  }
}

}  // namespace weft::gateway
