// Tells an iwpmd of this machine that a listener's port is mapped to another one, as the kernel would for an RNIC that
// maps ports. No driver without hardware does this. For root.
//
//   iwpm_mapping PID ADDR PORT MAPPED_PORT
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

sockaddr_storage endpoint(const std::string& address, const std::string& port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<std::uint16_t>(std::stoul(port)));
  if (::inet_pton(AF_INET, address.c_str(), &in.sin_addr) != 1) std::exit(2);
  sockaddr_storage out{};
  std::memcpy(&out, &in, sizeof(in));
  return out;
}

// Netlink's own structures, which are of the machine that they are used on.
class MapInfo {
 public:
  MapInfo() : len_(NLMSG_HDRLEN) {}

  template <typename T>
  void put(std::uint16_t type, const T& value) {
    const nlattr header{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + sizeof(value)), .nla_type = type};
    std::memcpy(&octets_[len_], &header, sizeof(header));
    std::memcpy(&octets_[len_ + NLA_HDRLEN], &value, sizeof(value));
    len_ += NLA_ALIGN(header.nla_len);
  }
  bool send_to(std::uint32_t pid) {
    nlmsghdr header{};
    header.nlmsg_len = static_cast<std::uint32_t>(len_);
    header.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_IWCM, RDMA_NL_IWPM_MAPINFO);
    header.nlmsg_flags = NLM_F_REQUEST;
    header.nlmsg_seq = 1;
    std::memcpy(octets_.data(), &header, sizeof(header));
    sockaddr_nl to{};
    to.nl_family = AF_NETLINK;
    to.nl_pid = pid;
    const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
    const ssize_t n = ::sendto(fd, octets_.data(), len_, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    if (n < 0) std::fprintf(stderr, "iwpm_mapping: %s\n", std::strerror(errno));
    if (fd >= 0) ::close(fd);
    return n == static_cast<ssize_t>(len_);
  }

 private:
  alignas(nlmsghdr) std::array<char, 1024> octets_{};
  std::size_t len_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  MapInfo message;
  message.put(IWPM_NLA_MAPINFO_LOCAL_ADDR, endpoint(argv[2], argv[3]));
  message.put(IWPM_NLA_MAPINFO_MAPPED_ADDR, endpoint(argv[2], argv[4]));
  // Another program holds the mapped port already: iwpmd need not reserve it.
  message.put(IWPM_NLA_MAPINFO_FLAGS, std::uint32_t{IWPM_FLAGS_NO_PORT_MAP});
  return message.send_to(static_cast<std::uint32_t>(std::stoul(argv[1]))) ? 0 : 1;
}
