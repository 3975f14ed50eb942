#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::testing {

// RawClients are TCP connections to a listener on this machine, from an address of the loopback of the test's choice.
// Each sends the test's octets, and nothing more.
class RawClients {
 public:
  // source: "127.0.0.9". port: of 127.0.0.1.
  RawClients(std::string source, std::uint16_t port) : source_(std::move(source)), port_(port) {}
  ~RawClients();
  RawClients(const RawClients&) = delete;
  RawClients& operator=(const RawClients&) = delete;

  // Connects and sends an MPA Request (RFC 5044 section 7.1, revision 1); whether the Reply accepts it.
  bool connect_mpa(const std::string& private_data = {});
  // Connects, and says nothing at all.
  void connect_silently();
  // Sends one_send over the connection that was made last.
  void send_message(const std::string& payload);
  // Whether the listener ended the connection that was made last; waits for that, at most a minute.
  bool is_ended();
  // How many the listener has not ended, as soon as there are no more than `most`; waits for that, at most a minute.
  std::size_t num_open(std::size_t most);

 private:
  std::string source_;
  std::uint16_t port_;
  std::vector<int> fds_;
  std::uint32_t num_sent_ = 0;  // messages over the last one
};

// An FPDU with a whole RDMAP Send (RFC 5040 section 4.3), the msn-th of its connection. payload: at most 65,000 octets.
std::string one_send(std::uint32_t msn, const std::string& payload);

// 32 bits as they stand on the wire.
std::string be32(std::uint32_t word);

std::uint16_t port_in(const std::string& address);

}  // namespace weft::testing
