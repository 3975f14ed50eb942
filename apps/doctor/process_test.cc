#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "apps/doctor/facts.h"

namespace weft::apps::doctor {
namespace {

// This examines the machine that runs the test.
TEST(Process, AsksWithoutPrivilegeAndSendsNothing) {
  Facts facts;
  ask_process(facts);
  EXPECT_FALSE(facts.soft_error) << *facts.soft_error;
  EXPECT_GT(facts.nofile_soft, 0u);
  EXPECT_GT(facts.soft_max_qp_wr, 0u);
  EXPECT_THAT(facts.backends, ::testing::Contains("soft"));
}

TEST(Process, TellsTheLoopbackFromOtherAddresses) {
  Facts facts;
  ask_process(facts);
  const auto at = std::ranges::find(facts.addresses, std::string("127.0.0.1"), &Address::text);
  ASSERT_NE(at, facts.addresses.end());
  EXPECT_EQ(at->interface, "lo");
  EXPECT_TRUE(at->loopback && at->up);
  EXPECT_FALSE(at->link_local);
  for (const Address& address : facts.addresses) EXPECT_EQ(address.loopback, address.interface == "lo") << address.text;
}

// Another program may have the port already. It is in use then, too.
TEST(Process, SeesThatAPortIsTaken) {
  const int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
            udp = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(kRpingPort);
  ::bind(tcp, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  address.sin_port = htons(kIwpmPort);
  ::bind(udp, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  Facts facts;
  ask_process(facts);
  EXPECT_EQ(facts.tcp_ports[kRpingPort], PortState::kInUse);
  EXPECT_EQ(facts.iwpm_port, PortState::kInUse);
  ::close(tcp);
  ::close(udp);
}

// A server's connections stay in TIME_WAIT for a minute after its end. The port is free all the same.
TEST(Process, APortOfConnectionsThatEndedIsFree) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(kMountPort);
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listener, at, sizeof(address)) != 0) GTEST_SKIP() << "another program has port " << kMountPort;
  ASSERT_EQ(::listen(listener, 1), 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(client, at, sizeof(address)), 0);
  const int server = ::accept(listener, nullptr, nullptr);
  ::close(server);
  char octet = 0;
  EXPECT_EQ(::read(client, &octet, 1), 0) << "the server ends first: the rest of the connection is at its port";
  ::close(client);
  ::close(listener);
  Facts facts;
  ask_process(facts);
  EXPECT_EQ(facts.tcp_ports[kMountPort], PortState::kFree);
}

}  // namespace
}  // namespace weft::apps::doctor
