#include "apps/onc_tcp/client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace weft::onc_tcp {
namespace {

using namespace std::chrono_literals;
using Octets = std::vector<std::uint8_t>;
using rpcrdma::xdr::XdrReader;
using rpcrdma::xdr::XdrWriter;

// Peer is a listener on loopback whose one connection is served by a function on a thread of its own.
class Peer {
 public:
  explicit Peer(std::function<void(int)> serve) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in addr{};
    addr.sin_family = AF_INET;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&addr), sizeof(addr)), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    socklen_t len = sizeof(addr_);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&addr_), &len);
    thread_ = std::thread([this, serve = std::move(serve)] {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      serve(fd);
      close(fd);
    });
  }
  ~Peer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  absl::StatusOr<std::unique_ptr<Client>> connect(int stop_fd = -1, Slow slow = {}) const {
    return Client::connect(addr_, sizeof(sockaddr_in), 5s, stop_fd, Client::LocalPort::kAny, std::move(slow));
  }

 private:
  int listener_ = -1;
  sockaddr_storage addr_{};
  std::thread thread_;
};

// The xid of the one Call that arrives; everything of it is read.
std::uint32_t receive_call(int fd) {
  RecordReader reader(1 << 16);
  Octets buffer(4096);
  while (true) {
    const ssize_t len = recv(fd, buffer.data(), buffer.size(), 0);
    if (len <= 0) return 0;
    ConstBytes input = ConstBytes(buffer).first(static_cast<std::size_t>(len));
    if (reader.next(input) != RecordReader::Outcome::kRecord) continue;
    XdrReader record(reader.record());
    rpcrdma::CallHeader call;
    EXPECT_EQ(rpcrdma::parse_call(record, call), rpcrdma::CallParse::kOk);
    return call.xid;
  }
}

void send_reply(int fd, const rpcrdma::ReplyHeader& reply, const Octets& results = {}) {
  Octets message;
  XdrWriter writer(message);
  rpcrdma::emit_reply(writer, reply);
  writer.raw(results);
  Octets stream;
  emit_record(message, stream);
  EXPECT_EQ(send(fd, stream.data(), stream.size(), MSG_NOSIGNAL), static_cast<ssize_t>(stream.size()));
}

rpcrdma::CallHeader mount_null() {
  return {0, 100005, 3, 0, {}, {}};
}

TEST(Client, ReturnsTheResultsOfItsOwnCall) {
  Peer peer([](int fd) {
    rpcrdma::ReplyHeader reply;
    reply.xid = receive_call(fd);
    rpcrdma::ReplyHeader stale = reply;
    stale.xid += 77;
    send_reply(fd, stale, {9, 9, 9, 9});
    send_reply(fd, reply, {1, 2, 3, 4});
  });
  auto client = peer.connect();
  ASSERT_TRUE(client.ok()) << client.status();
  auto results = (*client)->call(mount_null(), {}, 5s);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(*results, (Octets{1, 2, 3, 4}));
}

TEST(Client, APeerThatNeverStopsSendingWhatNobodyAskedForHoldsNobody) {
  const int stop = eventfd(0, EFD_CLOEXEC);
  const auto floods = [](int fd) {
    rpcrdma::ReplyHeader stale;
    stale.xid = receive_call(fd) + 77;
    Octets message, stream;
    XdrWriter writer(message);
    rpcrdma::emit_reply(writer, stale);
    emit_record(message, stream);
    while (send(fd, stream.data(), stream.size(), MSG_NOSIGNAL) > 0) {
    }
  };
  {
    Peer peer(floods);
    auto client = peer.connect();
    ASSERT_TRUE(client.ok());
    EXPECT_EQ((*client)->call(mount_null(), {}, 50ms).status().code(), absl::StatusCode::kDeadlineExceeded);
    client->reset();
  }
  Peer peer(floods);
  auto client = peer.connect(stop);
  ASSERT_TRUE(client.ok());
  eventfd_write(stop, 1);
  EXPECT_EQ((*client)->call(mount_null(), {}, 3600s).status().code(), absl::StatusCode::kCancelled);
  client->reset();
  close(stop);
}

// The peer answers only after the user was told of it.
TEST(Client, ASlowAnswerIsToldOfOnce) {
  const int told = eventfd(0, EFD_CLOEXEC);
  Peer peer([told](int fd) {
    rpcrdma::ReplyHeader reply;
    reply.xid = receive_call(fd);
    eventfd_t value = 0;
    eventfd_read(told, &value);
    send_reply(fd, reply);
  });
  int num_told = 0;
  auto client = peer.connect(-1, {20ms, [&] {
                                    ++num_told;
                                    eventfd_write(told, 1);
                                  }});
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE((*client)->call(mount_null(), {}, 3600s).ok());
  EXPECT_EQ(num_told, 1);
  close(told);
}

TEST(Client, RefusalsSayWhy) {
  Peer peer([](int fd) {
    rpcrdma::ReplyHeader reply;
    reply.xid = receive_call(fd);
    reply.accept = rpcrdma::AcceptStat::kProgUnavail;
    send_reply(fd, reply);
  });
  auto client = peer.connect();
  ASSERT_TRUE(client.ok());
  auto results = (*client)->call(mount_null(), {}, 5s);
  EXPECT_EQ(results.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(results.status().message().empty());
}

TEST(Client, AClosedConnectionAndNonsenseAreErrors) {
  Peer closes([](int fd) { receive_call(fd); });
  auto client = closes.connect();
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->call(mount_null(), {}, 5s).status().code(), absl::StatusCode::kUnavailable);

  Peer babbles([](int fd) {
    receive_call(fd);
    const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    EXPECT_GT(send(fd, text, sizeof(text), MSG_NOSIGNAL), 0);
  });
  client = babbles.connect();
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->call(mount_null(), {}, 5s).status().code(), absl::StatusCode::kUnavailable);
}

TEST(Client, StopAndDeadlineEndTheWait) {
  const int done = eventfd(0, EFD_CLOEXEC);
  eventfd_t value = 0;
  Peer silent([&](int) { eventfd_read(done, &value); });
  const int stop = eventfd(1, EFD_CLOEXEC);
  auto client = silent.connect();
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->call(mount_null(), {}, 0ms).status().code(), absl::StatusCode::kDeadlineExceeded);
  eventfd_write(done, 1);

  Peer mute([](int fd) {
    while (receive_call(fd) != 0) {
    }
  });
  auto stopped = mute.connect(stop);
  if (stopped.ok()) {
    EXPECT_EQ((*stopped)->call(mount_null(), {}, 5s).status().code(), absl::StatusCode::kCancelled);
  } else {
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  }
  close(stop);
  close(done);
}

TEST(Client, RefusedConnectionIsUnavailable) {
  sockaddr_storage nowhere{};
  {
    // A port that was free a moment ago.
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in addr{};
    addr.sin_family = AF_INET;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&addr), sizeof(addr)), 0);
    socklen_t len = sizeof(nowhere);
    getsockname(fd, reinterpret_cast<sockaddr*>(&nowhere), &len);
    close(fd);
  }
  auto client = Client::connect(nowhere, sizeof(sockaddr_in), 5s);
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace weft::onc_tcp
