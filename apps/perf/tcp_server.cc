#include "apps/perf/tcp_server.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/address.h"
#include "base/peer_group.h"
#include "mpa/wire/cursor.h"

namespace weft::apps::perf {
namespace {

constexpr std::size_t kBlock = 1 << 20;

// Counts everything until the client's end, in one buffer that stays in the cache.
IoResult drain(int fd, Waiter& waiter, Totals& totals) {
  std::vector<std::uint8_t> buffer(kBlock);
  receive_in_bulk(fd);
  while (true) {
    ssize_t n = recv_bulk(fd, buffer, waiter);
    if (n <= 0) return n == 0 ? IoResult::kDone : IoResult::kError;
    totals.octets += std::uint64_t(n);
    ++totals.messages;
  }
}

IoResult echo(int fd, std::size_t size, Waiter& waiter) {
  std::vector<std::uint8_t> buffer(size);
  while (true) {
    IoResult result = recv_all(fd, buffer, waiter);
    if (result == IoResult::kEof) return IoResult::kDone;
    if (result == IoResult::kDone) result = send_all(fd, buffer, waiter);
    if (result != IoResult::kDone) return result;
  }
}

IoResult answer_batch(int fd, std::uint64_t messages, Waiter& waiter) {
  std::array<std::uint8_t, kBatchAckLen> ack{};
  Writer writer(ack);
  [[maybe_unused]] bool fits = writer.u64(messages);
  return send_all(fd, ack, waiter);
}

// Takes messages one by one: each starts with its number, and each batch is answered.
IoResult take_batches(int fd, const Hello& hello, Waiter& waiter, Totals& totals) {
  std::size_t size = hello.size;
  std::vector<std::uint8_t> buffer(std::max(kBlock, 2 * size));
  std::size_t filled = 0;
  while (true) {
    ssize_t n = recv_some(fd, std::span(buffer).subspan(filled), waiter);
    if (n < 0) return IoResult::kError;
    if (n == 0) return filled == 0 ? IoResult::kDone : IoResult::kEof;
    filled += std::size_t(n);
    std::size_t used = 0;
    for (; filled - used >= size; used += size) {
      Reader reader(ConstBytes(buffer).subspan(used, size));
      std::uint32_t number = 0;
      if (!reader.u32(number) || number != std::uint32_t(totals.messages)) return IoResult::kError;
      ++totals.messages;
      totals.octets += size;
      if (totals.messages % hello.depth == 0 && answer_batch(fd, totals.messages, waiter) != IoResult::kDone) {
        return IoResult::kError;
      }
    }
    std::copy(buffer.begin() + std::ptrdiff_t(used), buffer.begin() + std::ptrdiff_t(filled), buffer.begin());
    filled -= used;
  }
}

// A plain file server: every octet that the client sends asks for the whole file once.
IoResult serve_file(int fd, int file, std::uint64_t length, Waiter& waiter) {
  std::vector<std::uint8_t> buffer(kBlock);
  while (true) {
    std::uint8_t ask = 0;
    IoResult result = recv_all(fd, {&ask, 1}, waiter);
    if (result == IoResult::kEof) return IoResult::kDone;
    if (result != IoResult::kDone) return result;
    for (std::uint64_t offset = 0; offset < length;) {
      auto want = std::size_t(std::min<std::uint64_t>(kBlock, length - offset));
      ssize_t n = pread(file, buffer.data(), want, off_t(offset));
      if (n <= 0) return IoResult::kError;
      if (send_all(fd, std::span(buffer).first(std::size_t(n)), waiter) != IoResult::kDone) return IoResult::kError;
      offset += std::uint64_t(n);
    }
  }
}

IoResult take_file(int fd, int file, Waiter& waiter, Totals& totals) {
  std::vector<std::uint8_t> buffer(kBlock);
  while (true) {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
      ssize_t n = recv_some(fd, std::span(buffer).subspan(filled), waiter);
      if (n < 0) return IoResult::kError;
      if (n == 0) break;
      filled += std::size_t(n);
    }
    if (filled == 0) return IoResult::kDone;
    if (pwrite(file, buffer.data(), filled, off_t(totals.octets % kSinkLen)) != ssize_t(filled)) {
      return IoResult::kError;
    }
    totals.octets += filled;
    ++totals.messages;
    if (filled < buffer.size()) return IoResult::kDone;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpServer>> TcpServer::start(const sockaddr_storage& addr, TcpServerConfig config) {
  std::unique_ptr<TcpServer> server(new TcpServer(std::move(config)));
  auto listener = tcp_listen(addr, server->config_.congestion_control);
  if (!listener.ok()) return listener.status();
  server->listener_ = std::move(*listener);
  server->local_addr_ = local_address(server->listener_.get());
  server->acceptor_ = std::thread([raw = server.get()] { raw->accept_loop(); });
  return server;
}

TcpServer::~TcpServer() {
  stopping_ = true;
  if (listener_) shutdown(listener_.get(), SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  for (auto& session : sessions_) {
    shutdown(session->fd.get(), SHUT_RDWR);
    session->thread.join();
  }
}

void TcpServer::accept_loop() {
  while (!stopping_) {
    sockaddr_storage peer{};
    socklen_t len = sizeof(peer);
    Fd fd(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &len, SOCK_CLOEXEC));
    if (stopping_) return;
    const int error = errno;
    log_.on_time(std::chrono::steady_clock::now());
    if (!fd) {
      if (error == EINTR || error == ECONNABORTED) continue;
      log_.general_line(verbs::LogLevel::kWarn, "cannot accept a connection: {}", std::strerror(error));
      std::this_thread::sleep_for(config_.accept_pause);
      continue;
    }
    reap();
    std::string group = peer_group(peer);
    if (const std::string why = make_place(group); !why.empty()) {
      log_.line(verbs::LogLevel::kWarn, address_str(peer), "turned away: {}", why);
      continue;
    }
    auto session = std::make_unique<Session>();
    session->fd = std::move(fd);
    session->name = address_str(peer);
    session->group = std::move(group);
    session->peer = place_of(peer);
    session->thread = std::thread([this, raw = session.get()] {
      serve(*raw);
      shutdown(raw->fd.get(), SHUT_RDWR);
      raw->over = true;
    });
    sessions_.push_back(std::move(session));
  }
}

void TcpServer::reap() {
  std::erase_if(sessions_, [](const std::unique_ptr<Session>& session) {
    if (!session->over) return false;
    session->thread.join();
    return true;
  });
}

std::string TcpServer::make_place(const std::string& group) {
  std::vector<Occupant> occupants;
  for (const auto& session : sessions_) {
    occupants.push_back({.group = session->group, .silent_for = silent_for(session->fd.get())});
  }
  Admission admission = admit({.group = group}, occupants, kPlaces);
  for (const std::size_t i : admission.leaving) {
    log_.line(verbs::LogLevel::kInfo, sessions_[i]->name, "gives its place to another client");
    shutdown(sessions_[i]->fd.get(), SHUT_RDWR);
    sessions_[i]->thread.join();
    sessions_[i].reset();
  }
  std::erase(sessions_, nullptr);
  return std::move(admission.refusal);
}

Ready TcpServer::prepare(const Hello& hello, Fd& file) const {
  Ready ready;
  ready.congestion_control = config_.congestion_control;
  if (hello.op == Op::kTcpFileRead) {
    file = Fd(config_.file.empty() ? -1 : open(config_.file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat attributes {};
    if (!file || fstat(file.get(), &attributes) != 0 || attributes.st_size <= 0) {
      ready.error = config_.file.empty() ? "the listener serves no file, start it with --file PATH"
                                         : "the listener cannot read its --file, or it is empty";
    }
    ready.length = std::uint64_t(attributes.st_size);
  } else if (hello.op == Op::kTcpFileWrite) {
    file = Fd(config_.sink.empty() ? -1 : open(config_.sink.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!file) {
      ready.error = config_.sink.empty() ? "the listener has nowhere to write, start it with --sink PATH"
                                         : "the listener cannot write its --sink";
    }
  } else if (!is_tcp(hello.op)) {
    ready.error = "this is the port for the TCP baselines";
  } else if ((hello.op == Op::kTcpBatch || hello.op == Op::kTcpLat) &&
             (hello.size < sizeof(std::uint32_t) || hello.size > kBlock)) {
    ready.error = "tcp-lat and tcp-batch take messages of 4 bytes to 1 MiB";
  }
  return ready;
}

void TcpServer::serve(const Session& session) const {
  const int fd = session.fd.get();
  // A silent connection must not hold its thread for ever, least of all before its first word.
  constexpr std::chrono::milliseconds kHelloPatience{5000};
  Waiter hello_waiter(ProgressMode::kBlock, session.peer, std::min(kHelloPatience, config_.patience), nullptr);
  hello_waiter.prepare(fd);
  std::array<std::uint8_t, kHelloLen> octets{};
  if (recv_all(fd, octets, hello_waiter) != IoResult::kDone) return;
  std::optional<Hello> hello = parse_hello(octets);
  if (!hello) return;
  Fd file;
  Ready ready = prepare(*hello, file);
  ready.congestion_control = congestion_control_of(fd);
  const ProgressMode mode = config_.progress.value_or(hello->spin ? ProgressMode::kAdapt : ProgressMode::kBlock);
  Waiter waiter(mode, session.peer, config_.patience, nullptr);
  if (send_all(fd, emit_ready(ready), waiter) != IoResult::kDone || !ready.error.empty()) return;

  Totals totals;
  totals.final = true;
  IoResult result = IoResult::kError;
  switch (hello->op) {
    case Op::kTcp: result = drain(fd, waiter, totals); break;
    case Op::kTcpLat: result = echo(fd, hello->size, waiter); break;
    case Op::kTcpBatch: result = take_batches(fd, *hello, waiter, totals); break;
    case Op::kTcpFileRead: result = serve_file(fd, file.get(), ready.length, waiter); break;
    case Op::kTcpFileWrite: result = take_file(fd, file.get(), waiter, totals); break;
    default: break;
  }
  if (result == IoResult::kDone) send_all(fd, emit_totals(totals), waiter);
}

}  // namespace weft::apps::perf
