#include "apps/onc_tcp/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

// g++ 12 reports a mismatched operator delete of Asio's coroutine frames when it inlines only one half of the pair.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace weft::onc_tcp {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMaxPlaces = 64;  // for one sendmsg
// The interval between requests to the pool. Code that gives a Buffer back calls resume.
constexpr std::chrono::milliseconds kRoomRetry{20};
// The bytes that a queued record takes besides its own.
constexpr std::size_t kRecordOverhead = 256;

// Bounds the octets that the kernel keeps for a peer that does not read, and the time. The Stream counts octets only
// until the socket takes them.
void bound_kernel_memory(asio::ip::tcp::socket& socket) {
  constexpr int kMaxUnsent = 256 << 10, kUserTimeoutMs = 90000, kOn = 1;
  const int fd = socket.native_handle();
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMaxUnsent, sizeof(kMaxUnsent));
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof(kUserTimeoutMs));
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof(kOn));
}

}  // namespace

bool Pace::is_late(TimePoint now, bool owed, std::uint64_t ends, std::uint64_t moved, std::chrono::milliseconds timeout,
                   std::size_t least) {
  if (!owed) {
    since_.reset();
    return false;
  }
  if (!since_ || ends != ends_ || moved - moved_ >= least) {
    since_ = now;
    ends_ = ends;
    moved_ = moved;
  }
  return now - *since_ >= timeout;
}

bool MemoryPace::is_slow(TimePoint now, bool owed, std::uint64_t ends, std::uint64_t moved, std::size_t held,
                         Duration given) {
  const std::uint64_t moved_since = moved - std::exchange(moved_, moved);
  const bool goes_on = owed && time_ && ends == ends_;
  ends_ = ends;
  if (!goes_on) {
    time_.reset();
    if (owed) time_.emplace(kTerms, moved < held ? given : kTerms.grace, now);
    return false;
  }
  time_->earn(moved_since, held, now);
  if (!time_->is_over(now)) return false;
  // It stays slow until it moves fast enough again, and owes nothing for the time before.
  time_.emplace(kTerms, Duration::zero(), now);
  return true;
}

Stream::Stream(asio::ip::tcp::socket socket, rpcrdma::BufferPool& pool, const StreamConfig& config,
               std::shared_ptr<Room::Client> client)
    : socket_(std::move(socket)),
      config_(config),
      receiver_(pool, config.record, std::move(client)),
      resumed_(socket_.get_executor()) {}

void Stream::start(StreamEvents events) {
  events_ = std::make_shared<const StreamEvents>(std::move(events));
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  bound_kernel_memory(socket_);
  socket_.non_blocking(true, ignored);  // for send_all
  // The coroutine's frame holds the Stream.
  asio::co_spawn(
      socket_.get_executor(), [self = shared_from_this()]() -> asio::awaitable<void> { co_await self->receive_all(); },
      asio::detached);
}

void Stream::close(const std::string& why) {
  if (std::exchange(closed_, true)) return;
  error_code ignored;
  socket_.close(ignored);
  resumed_.cancel();
  receiver_.close();
  sender_.clear();
  // on_end is the last call. The functions are destroyed with all that they hold.
  if (const auto events = std::exchange(events_, nullptr)) events->on_end(why);
}

void Stream::pause() {
  paused_ = true;
}

void Stream::resume() {
  paused_ = no_room_ = false;
  resumed_.cancel();
}

void Stream::look_for_room() {
  if (no_room_ && !receiver_.waits_in_line()) resumed_.cancel();
}

// Hands out the complete records. on_record may pause or close.
bool Stream::deliver() {
  while (!closed_ && !paused_ && !full_) {
    switch (receiver_.next()) {
      case RecordReceiver::Outcome::kNeedMore: return true;
      case RecordReceiver::Outcome::kRecord: {
        if (!takes_turn()) return true;
        const auto events = events_;
        ++num_records_;
        events->on_record(receiver_.take());
        break;
      }
      case RecordReceiver::Outcome::kNoRoom:
        no_room_ = true;
        if (events_->on_short) events_->on_short();
        return true;
      case RecordReceiver::Outcome::kTooLong:
        close("a record of more than " + std::to_string(config_.record.max_record) + " bytes, or one that never ends");
        return false;
    }
  }
  return !closed_;
}

bool Stream::takes_turn() {
  if (!events_->on_due) return true;
  if (turn_left_ != 0) {
    --turn_left_;
    return true;
  }
  if (!std::exchange(due_, true)) events_->on_due();
  return false;
}

std::size_t Stream::turn(std::size_t most) {
  due_ = false;
  turn_left_ = most;
  const std::uint64_t before = num_records_;
  if (deliver() && !due_) resumed_.cancel();
  turn_left_ = 0;
  return static_cast<std::size_t>(num_records_ - before);
}

asio::awaitable<void> Stream::wait_to_resume() {
  error_code ignored;
  if (paused_ || full_ || due_) {
    resumed_.expires_at(asio::steady_timer::time_point::max());
  } else {
    resumed_.expires_after(kRoomRetry);
  }
  co_await resumed_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  no_room_ = false;
}

asio::awaitable<void> Stream::receive_all() {
  while (deliver()) {
    if (paused_ || full_ || no_room_ || due_) {
      co_await wait_to_resume();
      continue;
    }
    const auto space = receiver_.space();
    const std::array<asio::mutable_buffer, 2> places = {asio::buffer(space[0].data(), space[0].size()),
                                                        asio::buffer(space[1].data(), space[1].size())};
    error_code error;
    const std::size_t n = co_await socket_.async_read_some(places, asio::redirect_error(asio::use_awaitable, error));
    if (closed_) co_return;
    // Some peers end with a reset (libnfs sets a linger time of 0). If no data is lost, this is an ordinary end.
    if (error == asio::error::eof || (error == asio::error::connection_reset && sender_.queued() == 0)) {
      close(receiver_.is_inside() ? "the connection ended within a record" : "");
      co_return;
    }
    if (error) {
      close(error.message());
      co_return;
    }
    received_ += n;
    receiver_.received(n);
  }
}

void Stream::send(std::unique_ptr<OutRecord> record) {
  if (closed_) return;
  sender_.push(std::move(record));
  full_ = full_ || (!config_.receives_always && weight() > config_.high_water);
  if (std::exchange(sending_, true)) return;
  asio::co_spawn(
      socket_.get_executor(), [self = shared_from_this()]() -> asio::awaitable<void> { co_await self->send_all(); },
      asio::detached);
}

// Does not use async_write_some: Asio may report its end after the end of a later read. Then the answer to a record
// would be handed out while the record still counts as unsent.
asio::awaitable<void> Stream::send_all() {
  std::array<ConstBytes, kMaxPlaces> parts;
  std::vector<asio::const_buffer> places;
  while (!closed_ && sender_.queued() > 0) {
    places.clear();
    const std::size_t num = sender_.gather(parts);
    for (std::size_t i = 0; i < num; ++i) places.emplace_back(parts[i].data(), parts[i].size());
    error_code error;
    const std::size_t n = socket_.write_some(places, error);
    if (error == asio::error::would_block || error == asio::error::interrupted) {
      co_await socket_.async_wait(asio::ip::tcp::socket::wait_write, asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    if (!error) sender_.sent(n);
    sent_ += n;
    if (sender_.queued() == 0) ++num_times_sent_;
    // Other handlers get their turn, and StreamEvents must not be called from within send.
    co_await asio::post(socket_.get_executor(), asio::use_awaitable);
    if (closed_) co_return;
    if (error) {
      close(error.message());
      co_return;
    }
    if (full_ && weight() <= config_.low_water) {
      full_ = false;
      resumed_.cancel();
    }
  }
  sending_ = false;
}

std::size_t Stream::weight() const {
  return sender_.queued() + sender_.num_queued() * kRecordOverhead;
}

void Stream::check(TimePoint now, Duration given) {
  if (closed_) return;
  // A record that already holds much memory and waits for more is not excused: it keeps memory from other clients.
  const bool waits = paused_ || full_ || due_ || (no_room_ && receiver_.holds_little());
  const bool owes_record = receiver_.is_inside() && !waits, owes_reading = sender_.queued() > 0;
  // Both are asked: records that it sends do not excuse a peer that reads no answers.
  const bool sends_slowly = record_pace_.is_slow(now, owes_record, num_records_, received_, receiver_.held(), given);
  const bool reads_slowly = answer_pace_.is_slow(now, owes_reading, num_times_sent_, sent_, sender_.held(), given);
  is_slow_ = sends_slowly || reads_slowly;
  const auto is_late = [&](Pace& pace, bool owed, std::uint64_t ends, std::uint64_t moved) {
    return pace.is_late(now, owed, ends, moved, config_.stall_timeout, config_.least_moved);
  };
  const bool reads_late = is_late(send_pace_, owes_reading, num_times_sent_, sent_);
  const bool record_late = is_late(receive_pace_, owes_record, num_records_, received_);
  if (!reads_late && !record_late) return;
  close("less than " + std::to_string(config_.least_moved) + " bytes moved in " +
        std::to_string(config_.stall_timeout.count()) + " ms, although " +
        (reads_late ? "some wait to be sent" : "a record has begun"));
}

}  // namespace weft::onc_tcp
