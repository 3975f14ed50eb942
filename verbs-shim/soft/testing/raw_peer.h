#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <functional>
#include <initializer_list>
#include <string>

#include "base/address.h"
#include "base/fd.h"
#include "mpa/crc32c.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"

// Tests in which one end of a connection is a plain TCP socket of the test.
namespace weft::verbs::testing {

using std::chrono::seconds;

inline const std::string kRequestKey = "MPA ID Req Frame";
inline const std::string kReplyKey = "MPA ID Rep Frame";

inline std::string octets(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out.push_back(static_cast<char>(value));
  return out;
}
inline const std::string kPlainReply = kReplyKey + octets({0x40, 1, 0, 0});

// One FPDU without Markers.
inline std::string fpdu(const std::string& ulpdu) {
  std::string out = octets({static_cast<int>(ulpdu.size() >> 8), static_cast<int>(ulpdu.size() & 0xff)}) + ulpdu;
  out.resize((out.size() + 3) / 4 * 4);
  const std::vector<std::uint8_t> covered(out.begin(), out.end());
  std::array<std::uint8_t, 4> crc;
  mpa::emit_crc(crc, mpa::crc32c(covered));
  return out.append(crc.begin(), crc.end());
}

inline const sockaddr* as_sockaddr(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

class RawPeerTest : public VerbsTest {
 protected:
  void reopen_client(const SoftConfig& config) {
    client_.close();
    client_.device = std::move(open_soft_device(config).value());
    client_.pd = std::move(client_.device->alloc_pd().value());
    client_.channel = std::move(client_.device->create_comp_channel().value());
    client_.cq = std::move(client_.device->create_cq(cqe_, client_.channel.get()).value());
    client_.cm = std::move(client_.device->create_event_channel().value());
    client_.id = std::move(client_.cm->create_id().value());
  }

  void reopen(Side& side) {
    listener_.reset();
    side.close();
    open(side);
  }

  // ---- the test as a listening peer
  sockaddr_storage listen_raw() {
    raw_listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_storage any = loopback(AF_INET, 0);
    EXPECT_EQ(::bind(raw_listener_.get(), as_sockaddr(any), sizeof(sockaddr_in)), 0);
    EXPECT_EQ(::listen(raw_listener_.get(), 8), 0);
    return local_address(raw_listener_.get());
  }
  Fd accept_raw() {
    Fd fd;
    EXPECT_TRUE(drive_raw([&] {
      fd = Fd(::accept4(raw_listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      return static_cast<bool>(fd);
    }));
    return fd;
  }
  // As drive, but never asleep: the test's own sockets wake no device.
  bool drive_raw(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      step();
      if (done()) return true;
    }
    return false;
  }
  std::string hear(const Fd& fd, std::size_t len) {
    std::string heard;
    EXPECT_TRUE(drive_raw([&] { return hear_more(fd, heard) || heard.size() >= len; }));
    return heard;
  }
  // Reads all octets that have arrived. Returns true at the end of the stream.
  static bool hear_more(const Fd& fd, std::string& heard, bool* reset = nullptr) {
    char buffer[4096];
    for (;;) {
      const ssize_t n = ::recv(fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (n > 0) {
        heard.append(buffer, static_cast<std::size_t>(n));
        continue;
      }
      if (n < 0 && reset != nullptr) *reset = errno == ECONNRESET;
      return n == 0 || errno == ECONNRESET;
    }
  }
  static void say(const Fd& fd, const std::string& what) {
    EXPECT_EQ(::send(fd.get(), what.data(), what.size(), MSG_NOSIGNAL), static_cast<ssize_t>(what.size()));
  }
  // A socket whose Request of Rev 1 the server has taken, and not answered yet.
  Fd request_raw() {
    EXPECT_TRUE(listen().ok());
    Fd raw(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_storage to = server_.id->local_addr();
    EXPECT_EQ(::connect(raw.get(), as_sockaddr(to), sizeof(sockaddr_in)), 0);
    say(raw, kRequestKey + octets({0x40, 1, 0, 0}));
    take_request();
    return raw;
  }
  void connect_to(const sockaddr_storage& to, const ConnParam& param = {{}, 16, 16}) {
    ASSERT_TRUE(client_.id->resolve_addr(to, seconds(1)).ok());
    ASSERT_TRUE(client_.id->resolve_route(seconds(1)).ok());
    make_qp(client_);
    const Status status = client_.id->connect(param);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }

  Fd raw_listener_;
};

}  // namespace weft::verbs::testing
