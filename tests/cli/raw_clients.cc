#include "tests/cli/raw_clients.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "mpa/crc32c.h"

namespace weft::testing {
namespace {

sockaddr_in loopback(const std::string& host, std::uint16_t port) {
  sockaddr_in addr{};
  addr.sin_family = AF_INET;
  addr.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &addr.sin_addr), 1) << host;
  return addr;
}

}  // namespace

std::string be32(std::uint32_t word) {
  std::string octets;
  for (int shift = 24; shift >= 0; shift -= 8) octets += static_cast<char>(word >> shift & 0xff);
  return octets;
}

std::string one_send(std::uint32_t msn, const std::string& payload) {
  // DDP: untagged and last, version 1; RDMAP: version 1, Send. Then the STag of nothing, queue 0, the MSN, offset 0.
  std::string ulpdu("\x41\x43\0\0\0\0\0\0\0\0", 10);
  ulpdu += be32(msn) + std::string(4, '\0') + payload;
  std::string fpdu = {static_cast<char>(ulpdu.size() >> 8), static_cast<char>(ulpdu.size() & 0xff)};
  fpdu += ulpdu;
  fpdu.resize((fpdu.size() + 3) / 4 * 4);
  const std::uint32_t crc = mpa::crc32c({reinterpret_cast<const std::uint8_t*>(fpdu.data()), fpdu.size()});
  std::array<std::uint8_t, 4> field{};
  mpa::emit_crc(field, crc);
  fpdu.append(field.begin(), field.end());
  return fpdu;
}

RawClients::~RawClients() {
  for (const int fd : fds_) close(fd);
}

void RawClients::connect_silently() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in from = loopback(source_, 0), to = loopback("127.0.0.1", port_);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  fds_.push_back(fd);
  num_sent_ = 0;
}

void RawClients::send_message(const std::string& payload) {
  const std::string fpdu = one_send(++num_sent_, payload);
  // A peer that has ended the connection by now refuses the rest.
  send(fds_.back(), fpdu.data(), fpdu.size(), MSG_NOSIGNAL);
}

bool RawClients::connect_mpa(const std::string& private_data) {
  connect_silently();
  // CRCs wanted, no Markers, revision 1.
  std::string request = std::string("MPA ID Req Frame") + std::string("\x40\x01\0", 3);
  request += static_cast<char>(private_data.size());
  request += private_data;
  EXPECT_EQ(send(fds_.back(), request.data(), request.size(), MSG_NOSIGNAL), ssize_t(request.size()));
  std::array<char, 20> reply{};
  if (recv(fds_.back(), reply.data(), reply.size(), MSG_WAITALL) != ssize_t(reply.size())) return false;
  constexpr char kRejected = 0x20;
  return (reply[16] & kRejected) == 0;
}

bool RawClients::is_ended() {
  constexpr int kMinute = 60000;
  std::array<char, 4096> rest{};
  pollfd readable{fds_.back(), POLLIN, 0};
  while (poll(&readable, 1, kMinute) == 1) {
    if (recv(fds_.back(), rest.data(), rest.size(), 0) <= 0) return true;
  }
  return false;
}

std::size_t RawClients::num_open(std::size_t most) {
  constexpr int kMinute = 60000;
  std::vector<pollfd> open;
  for (const int fd : fds_) open.push_back({fd, POLLRDHUP, 0});
  while (open.size() > most && poll(open.data(), open.size(), kMinute) > 0) {
    std::erase_if(open, [](const pollfd& one) { return one.revents != 0; });
  }
  return open.size();
}

std::uint16_t port_in(const std::string& address) {
  return static_cast<std::uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
}

}  // namespace weft::testing
