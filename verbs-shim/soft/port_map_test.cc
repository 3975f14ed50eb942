// The iWARP port mapper between soft RNICs, and with mappers that the test plays itself. All of it on loopback and on
// UDP ports that the system picks.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "base/address.h"
#include "base/fd.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/iwpm/mapper.h"
#include "verbs-shim/soft/port_map_ask.h"

namespace weft::verbs::testing {
namespace {

using soft::iwpm::Endpoint;
using soft::iwpm::IpVersion;
using soft::iwpm::Message;
using soft::iwpm::MessageType;
using std::chrono::milliseconds;
using std::chrono::seconds;

Endpoint endpoint_of(const sockaddr_storage& address) {
  Endpoint out;
  const bool v4 = address.ss_family == AF_INET;
  const auto* octets = reinterpret_cast<const std::uint8_t*>(&address);
  std::copy_n(octets + (v4 ? offsetof(sockaddr_in, sin_addr) : offsetof(sockaddr_in6, sin6_addr)), v4 ? 4 : 16,
              out.address.begin());
  out.port = port_of(address);
  return out;
}

Fd bound_socket(int type, const sockaddr_storage& at) {
  Fd fd(::socket(at.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  EXPECT_EQ(::bind(fd.get(), as_sockaddr(at), address_len(at)), 0) << std::strerror(errno);
  return fd;
}

std::uint16_t free_port(int type, int family) {
  return port_of(local_address(bound_socket(type, loopback(family, 0)).get()));
}

// Mapper is a peer's port mapper: it hears, and sends the test's answers.
struct Mapper {
  explicit Mapper(int family) : fd(bound_socket(SOCK_DGRAM, loopback(family, 0))) {}
  std::uint16_t port() const { return port_of(local_address(fd.get())); }

  // Whole datagrams that have come since.
  void hear() {
    std::uint8_t octets[100];
    for (;;) {
      socklen_t len = sizeof(from);
      const ssize_t n = ::recvfrom(fd.get(), octets, sizeof(octets), 0, reinterpret_cast<sockaddr*>(&from), &len);
      if (n < 0) return;
      const auto parsed = soft::iwpm::parse_message(ConstBytes(octets, static_cast<std::size_t>(n)));
      ASSERT_TRUE(std::holds_alternative<Message>(parsed));
      heard.push_back(std::get<Message>(parsed));
    }
  }
  void say(const Message& message) { say(message, fd); }
  void say(const Message& message, const Fd& by) {
    std::array<std::uint8_t, soft::iwpm::kMaxMessageLen> octets;
    const std::size_t len = emit_message(message, octets);
    say(ConstBytes(octets).first(len), by);
  }
  void say(ConstBytes octets, const Fd& by) {
    EXPECT_EQ(::sendto(by.get(), octets.data(), octets.size(), 0, as_sockaddr(from), address_len(from)),
              static_cast<ssize_t>(octets.size()));
  }
  // An answer to the first message that it heard.
  Message answer(MessageType type, std::uint16_t port) const {
    Message out = heard.front();
    out.type = type;
    out.accepting.port = port;
    out.mapped_connecting = {};
    return out;
  }

  Fd fd;
  sockaddr_storage from{};
  std::vector<Message> heard;
};

// LogLines keeps the lines of a device; its threads may write several at once.
class LogLines {
 public:
  Log log() {
    Log log;
    log.sink = [this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
    };
    return log;
  }
  int num_with(std::string_view words) {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(
        std::ranges::count_if(lines_, [&](const std::string& line) { return line.find(words) != line.npos; }));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

Result<std::unique_ptr<Device>> open_two_workers() {
  SoftConfig config;
  config.num_workers = 2;
  return open_soft_device(config);
}

class PortMapTest : public VerbsTest {
 protected:
  int family() const { return GetParam().family; }
  IpVersion ip() const { return family() == AF_INET ? IpVersion::k4 : IpVersion::k6; }

  ~PortMapTest() override {
    // Their threads write to lines_.
    listener_.reset();
    client_.close();
    server_.close();
  }

  SoftConfig config(std::uint16_t mapper_port) {
    SoftConfig config;
    config.log = lines_.log();
    config.num_workers = GetParam().own_progress ? 2 : 0;
    config.port_map.port = mapper_port;
    config.port_map.interval = std::chrono::hours(1);  // a missing answer would be noticed
    return config;
  }
  void reopen(Side& side, const SoftConfig& config) {
    if (&side == &server_) listener_.reset();
    side.close();
    side.device = std::move(open_soft_device(config).value());
    side.pd = std::move(side.device->alloc_pd().value());
    side.channel = std::move(side.device->create_comp_channel().value());
    const bool by_device = GetParam().own_progress && GetParam().blocking;
    side.cq = std::move(side.device->create_cq(cqe_, by_device ? nullptr : side.channel.get()).value());
    side.cm = std::move(side.device->create_event_channel().value());
    side.id = std::move(side.cm->create_id().value());
  }
  void ask(std::uint16_t mapper_port) { ask(config(mapper_port)); }
  void ask(SoftConfig config) {
    config.port_map.ask = true;
    reopen(client_, config);
  }
  void answer(std::uint16_t mapper_port, std::uint32_t per_second = 1000) {
    SoftConfig answering = config(mapper_port);
    answering.port_map.answer = true;
    answering.port_map.answers_per_second = per_second;
    reopen(server_, answering);
  }
  void resolve_to(std::uint16_t port) {
    ASSERT_TRUE(client_.id->resolve_addr(loopback(family(), port), seconds(1)).ok());
    ASSERT_TRUE(client_.id->resolve_route(seconds(1)).ok());
    make_qp(client_);
  }
  void connect_to(std::uint16_t port) {
    ASSERT_NO_FATAL_FAILURE(resolve_to(port));
    const Status status = client_.id->connect({{}, 16, 16});
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  std::uint16_t listening_port() {
    EXPECT_TRUE(listen().ok());
    return port_of(server_.id->local_addr());
  }
  void expect_connection() {
    take_request();
    make_qp(server_);
    ASSERT_TRUE(server_.id->accept({{}, 16, 16}).ok());
    ASSERT_TRUE(
        drive([&] { return server_.has(CmEventType::kEstablished) && client_.has(CmEventType::kEstablished); }));
  }
  // As drive, but never asleep: the test's own sockets wake no device.
  bool drive_awake(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      step();
      if (done()) return true;
    }
    return false;
  }
  bool hears(Mapper& mapper, std::size_t num) {
    return drive_awake([&] {
      mapper.hear();
      return mapper.heard.size() >= num;
    });
  }

  // ---- the test as a connecting peer, which asks over a connected socket
  Fd connected(const sockaddr_storage& mapper) {
    Fd fd(::socket(mapper.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::connect(fd.get(), as_sockaddr(mapper), address_len(mapper)), 0);
    return fd;
  }
  static void request(const Fd& fd, IpVersion version, const Endpoint& accepting) {
    std::array<std::uint8_t, soft::iwpm::kMaxMessageLen> octets;
    const std::size_t len = soft::iwpm::emit_message(
        {MessageType::kRequest, version, 0, 77, accepting, {accepting.address, 4711}, {accepting.address, 4711}},
        octets);
    EXPECT_EQ(::send(fd.get(), octets.data(), len, 0), static_cast<ssize_t>(len));
  }
  // The answer, once; nullopt where no socket receives (ICMP).
  std::optional<Message> hear_answer(const Fd& fd) {
    std::optional<Message> out;
    EXPECT_TRUE(drive_awake([&] {
      std::uint8_t octets[100];
      const ssize_t n = ::recv(fd.get(), octets, sizeof(octets), 0);
      if (n < 0) return errno == ECONNREFUSED;
      const auto parsed = soft::iwpm::parse_message(ConstBytes(octets, static_cast<std::size_t>(n)));
      EXPECT_TRUE(std::holds_alternative<Message>(parsed));
      out = std::get<Message>(parsed);
      return true;
    }));
    return out;
  }
  std::optional<MessageType> answer_for(std::uint16_t mapper_port, std::uint16_t port) {
    const Fd fd = connected(loopback(family(), mapper_port));
    request(fd, ip(), endpoint_of(loopback(family(), port)));
    const auto message = hear_answer(fd);
    if (!message) return std::nullopt;
    EXPECT_EQ(message->accepting, endpoint_of(loopback(family(), port)));
    EXPECT_EQ(message->connecting.port, 4711);
    EXPECT_EQ(message->assochandle, 77u);
    return message->type;
  }

  LogLines lines_;
};

TEST_P(PortMapTest, ConnectGoesToTheMappedPort) {
  for (const bool bound : {false, true}) {
    SCOPED_TRACE(bound);
    Mapper mapper(family());
    ask(mapper.port());
    reopen(server_, config(mapper.port()));
    const std::uint16_t real = listening_port();
    const std::uint16_t told = free_port(SOCK_STREAM, family());
    if (bound) {
      ASSERT_TRUE(client_.id->bind_addr(loopback(family(), 0)).ok());
    }
    connect_to(told);
    ASSERT_TRUE(hears(mapper, 1));
    const Message& request = mapper.heard.front();
    EXPECT_EQ(request.type, MessageType::kRequest);
    EXPECT_EQ(request.ip, ip());
    EXPECT_EQ(request.accepting, endpoint_of(loopback(family(), told)));
    EXPECT_EQ(request.mapped_connecting, request.connecting);
    EXPECT_NE(request.assochandle, 0u);
    settle();
    EXPECT_FALSE(server_.has(CmEventType::kConnectRequest));
    mapper.say(mapper.answer(MessageType::kAccept, real));
    expect_connection();
    EXPECT_EQ(port_of(client_.id->peer_addr()), real);
    EXPECT_EQ(endpoint_of(server_.id->peer_addr()), request.connecting);
    EXPECT_EQ(endpoint_of(client_.id->local_addr()), request.connecting);
    ASSERT_TRUE(hears(mapper, 2));
    EXPECT_EQ(mapper.heard.back(), mapper.answer(MessageType::kAck, real));
  }
}

TEST_P(PortMapTest, SoftRnicsAskAndAnswerEachOther) {
  const std::uint16_t mapper = free_port(SOCK_DGRAM, family());
  answer(mapper);
  ask(mapper);
  const std::uint16_t real = listening_port();
  connect_to(real);
  expect_connection();
  EXPECT_EQ(port_of(client_.id->peer_addr()), real);
}

TEST_P(PortMapTest, WithoutAMapperThePortIsTakenAsItIsAtOnce) {
  ask(free_port(SOCK_DGRAM, family()));
  connect_to(listening_port());
  expect_connection();
}

// Its connection goes to the port as it is (CmId::connect).
TEST_P(PortMapTest, WhoCannotAskSaysSo) {
  SoftConfig config;
  config.log = lines_.log();
  config.port_map.ask = true;
  EXPECT_EQ(soft::PortMapAsk::open(config, -1, sockaddr_storage{}), nullptr) << "of no family, so without a socket";
  EXPECT_EQ(lines_.num_with("port mapper: cannot ask for"), 1);
}

TEST_P(PortMapTest, ARejectLeadsToThePortAsItIs) {
  Mapper mapper(family());
  ask(mapper.port());
  const std::uint16_t real = listening_port();
  connect_to(real);
  ASSERT_TRUE(hears(mapper, 1));
  mapper.say(mapper.answer(MessageType::kReject, real));
  expect_connection();
}

TEST_P(PortMapTest, WhoCannotBeReachedAtTheMappedPortIsUnreachable) {
  Mapper mapper(family());
  ask(mapper.port());
  connect_to(listening_port());
  ASSERT_TRUE(hears(mapper, 1));
  mapper.say(mapper.answer(MessageType::kAccept, free_port(SOCK_STREAM, family())));
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kUnreachable); }));
  EXPECT_EQ(client_.take(CmEventType::kUnreachable)->status, ECONNREFUSED);
}

TEST_P(PortMapTest, NobodyElseIsHeardAndGarbageIsIgnored) {
  Mapper mapper(family());
  ask(mapper.port());
  const std::uint16_t real = listening_port();
  const std::uint16_t elsewhere = free_port(SOCK_STREAM, family());
  connect_to(elsewhere);
  ASSERT_TRUE(hears(mapper, 1));
  const Fd other = bound_socket(SOCK_DGRAM, loopback(family(), 0));
  mapper.say(mapper.answer(MessageType::kReject, elsewhere), other);
  Message forged = mapper.answer(MessageType::kReject, elsewhere);
  forged.assochandle += 1;
  mapper.say(forged);
  const std::vector<std::uint8_t> garbage(48, 0x14);
  for (std::size_t len = 0; len <= garbage.size(); ++len) mapper.say(ConstBytes(garbage).first(len), mapper.fd);
  mapper.say(std::vector<std::uint8_t>(1400, 0x34), mapper.fd);
  settle();
  EXPECT_FALSE(client_.has(CmEventType::kUnreachable));
  mapper.say(mapper.answer(MessageType::kAccept, real));
  expect_connection();
}

TEST_P(PortMapTest, WhoGoesWhileItAsksLeavesNothingBehind) {
  Mapper mapper(family());
  ask(mapper.port());
  const std::uint16_t real = listening_port();
  connect_to(real);
  ASSERT_TRUE(hears(mapper, 1));
  client_.qp.reset();
  client_.id.reset();
  mapper.say(mapper.answer(MessageType::kAccept, real), bound_socket(SOCK_DGRAM, loopback(family(), 0)));
  settle();
  EXPECT_FALSE(server_.has(CmEventType::kConnectRequest));
  // The device goes with it.
  client_.id = std::move(client_.cm->create_id().value());
  connect_to(real);
  ASSERT_TRUE(hears(mapper, 2));
  client_.close();
}

TEST_P(PortMapTest, AnswersForThePortsListenedOnAndRejectsOthers) {
  const std::uint16_t mapper = free_port(SOCK_DGRAM, family());
  answer(mapper);
  EXPECT_EQ(answer_for(mapper, 1), std::nullopt);
  const std::uint16_t first = listening_port();
  EXPECT_EQ(answer_for(mapper, first), MessageType::kAccept);
  auto second = std::move(server_.cm->create_id().value());
  ASSERT_TRUE(second->bind_addr(loopback(family(), 0)).ok());
  const std::uint16_t other = port_of(second->local_addr());
  EXPECT_EQ(answer_for(mapper, other), MessageType::kReject);
  ASSERT_TRUE(second->listen(1).ok());
  EXPECT_EQ(answer_for(mapper, other), MessageType::kAccept);
  server_.id.reset();
  EXPECT_EQ(answer_for(mapper, first), MessageType::kReject);
  EXPECT_EQ(answer_for(mapper, other), MessageType::kAccept);
  second.reset();
  EXPECT_EQ(answer_for(mapper, other), std::nullopt);
}

TEST_P(PortMapTest, ListeningEverywhereItAnswersFromTheAddressAsked) {
  const std::uint16_t mapper = free_port(SOCK_DGRAM, family());
  answer(mapper);
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(family());
  ASSERT_TRUE(server_.id->bind_addr(any).ok());
  ASSERT_TRUE(server_.id->listen(1).ok());
  const std::uint16_t real = port_of(server_.id->local_addr());
  EXPECT_EQ(answer_for(mapper, real), MessageType::kAccept);
  // An IPv6 socket of ours takes IPv4, too. The socket here is connected: it hears that address alone.
  sockaddr_storage second = loopback(AF_INET, mapper);
  reinterpret_cast<sockaddr_in*>(&second)->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  const Fd fd = connected(second);
  Endpoint asked = endpoint_of(second);
  asked.port = real;
  request(fd, IpVersion::k4, asked);
  const auto message = hear_answer(fd);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type, MessageType::kAccept);
  EXPECT_EQ(message->accepting, asked);
}

TEST_P(PortMapTest, AnotherAddressOfTheDeviceIsCoveredByTheSocketOfAll) {
  const std::uint16_t mapper = free_port(SOCK_DGRAM, family());
  answer(mapper);
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(family());
  ASSERT_TRUE(server_.id->bind_addr(any).ok());
  ASSERT_TRUE(server_.id->listen(1).ok());
  auto second = std::move(server_.cm->create_id().value());
  ASSERT_TRUE(second->bind_addr(loopback(family(), 0)).ok());
  ASSERT_TRUE(second->listen(1).ok());
  const std::uint16_t port = port_of(second->local_addr());
  EXPECT_EQ(answer_for(mapper, port), MessageType::kAccept);
  server_.id.reset();
  EXPECT_EQ(answer_for(mapper, port), MessageType::kAccept);
}

TEST_P(PortMapTest, WhereTheUdpPortIsTakenItListensAllTheSame) {
  const Mapper taken(family());
  answer(taken.port());
  connect_to(listening_port());
  expect_connection();
}

TEST_P(PortMapTest, ATakenUdpPortIsToldOncePerListener) {
  const Mapper taken(family());
  answer(taken.port());
  listening_port();
  std::vector<std::unique_ptr<CmId>> others;
  for (int i = 0; i < 2; ++i) {
    others.push_back(std::move(server_.cm->create_id().value()));
    ASSERT_TRUE(others.back()->bind_addr(loopback(family(), 0)).ok());
    ASSERT_TRUE(others.back()->listen(1).ok());
  }
  EXPECT_EQ(lines_.num_with("port mapper: UDP"), 3);
  others.clear();
  EXPECT_EQ(lines_.num_with("port mapper: UDP"), 3);
}

TEST_P(PortMapTest, UnpluggedDeviceAnswersForNobody) {
  const std::uint16_t mapper = free_port(SOCK_DGRAM, family());
  answer(mapper);
  const std::uint16_t real = listening_port();
  EXPECT_EQ(answer_for(mapper, real), MessageType::kAccept);
  unplug(*server_.device);
  EXPECT_EQ(answer_for(mapper, real), std::nullopt);
}

TEST_P(PortMapTest, AFloodOfRequestsIsAnsweredInPartAndServiceGoesOn) {
  constexpr std::uint32_t kPerSecond = 5;
  const std::uint16_t mapper = free_port(SOCK_DGRAM, family());
  answer(mapper, kPerSecond);
  const std::uint16_t real = listening_port();
  const Fd fd = connected(loopback(family(), mapper));
  const auto began = std::chrono::steady_clock::now();
  std::size_t num_answers = 0;
  const auto count = [&] {
    std::uint8_t octets[100];
    while (::recv(fd.get(), octets, sizeof(octets), 0) > 0) ++num_answers;
    return false;
  };
  const std::vector<std::uint8_t> garbage(64, 0xff);
  for (int i = 0; i < 2000; ++i) {
    request(fd, ip(), endpoint_of(loopback(family(), real)));
    ::send(fd.get(), garbage.data(), static_cast<std::size_t>(i % 65), 0);
    if (i % 50 == 0) step();
    count();
  }
  connect_to(real);
  expect_connection();
  settle();
  count();
  const auto elapsed = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began).count();
  EXPECT_GE(num_answers, 1u);
  EXPECT_LE(num_answers, kPerSecond + kPerSecond * static_cast<std::size_t>(elapsed) / 1000 + 1);
}

INSTANTIATE_TEST_SUITE_P(Soft, PortMapTest,
                         ::testing::Values(Backend{"Spinning", [] { return open_soft_device({}); }, false},
                                           Backend{"Blocking", [] { return open_soft_device({}); }, true},
                                           Backend{"Ipv6", [] { return open_soft_device({}); }, true, AF_INET6},
                                           Backend{"Threaded", open_two_workers, false, AF_INET, true, true}),
                         [](const auto& info) { return info.param.name; });

// Tests with a clock of their own.
class PortMapClockTest : public PortMapTest {};

TEST_P(PortMapClockTest, SilenceLeadsToThePortAsItIsAfterTheLastTry) {
  Mapper mapper(family());
  SoftConfig asking = config(mapper.port());
  asking.port_map.interval = seconds(100);
  asking.port_map.tries = 3;
  ask(asking);
  connect_to(listening_port());
  for (std::size_t num = 1; num <= 3; ++num) {
    ASSERT_TRUE(hears(mapper, num));
    settle();
    mapper.hear();
    EXPECT_EQ(mapper.heard.size(), num);
    EXPECT_EQ(mapper.heard.back(), mapper.heard.front());
    EXPECT_FALSE(server_.has(CmEventType::kConnectRequest));
    ASSERT_TRUE(client_.device->next_timeout());
    skew_ += seconds(100);
  }
  ASSERT_TRUE(drive_awake([&] { return server_.has(CmEventType::kConnectRequest); }));
  mapper.hear();
  EXPECT_EQ(mapper.heard.size(), 3u);
}

TEST_P(PortMapClockTest, AskingAndConnectingHaveTimeoutsOfTheirOwn) {
  Mapper mapper(family());
  ask(mapper.port());
  const std::uint16_t real = listening_port();
  connect_to(real);
  ASSERT_TRUE(hears(mapper, 1));
  skew_ += SoftConfig{}.connect_timeout + seconds(1);
  settle();
  EXPECT_FALSE(client_.has(CmEventType::kUnreachable));
  mapper.say(mapper.answer(MessageType::kAccept, real));
  expect_connection();
}

INSTANTIATE_TEST_SUITE_P(Soft, PortMapClockTest,
                         ::testing::Values(Backend{"Spinning", [] { return open_soft_device({}); }, false}),
                         [](const auto& info) { return info.param.name; });

TEST(PortMapConfigTest, IsChecked) {
  for (const auto& port_map : {SoftConfig::PortMap{.port = 0}, SoftConfig::PortMap{.interval = milliseconds(0)},
                               SoftConfig::PortMap{.tries = 0}, SoftConfig::PortMap{.answers_per_second = 0}}) {
    SoftConfig config;
    config.port_map = port_map;
    const auto device = open_soft_device(config);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error().errno_value, EINVAL);
  }
}

}  // namespace
}  // namespace weft::verbs::testing
