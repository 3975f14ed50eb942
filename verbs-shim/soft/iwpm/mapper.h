#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "base/time.h"
#include "verbs-shim/soft/iwpm/message.h"

// Both roles of the iWARP port mapper, without sockets and clocks: datagrams in, datagrams out.
namespace weft::verbs::soft::iwpm {

// Answer is the result of asking. kMapped: connect to `to`. Otherwise `to` is the endpoint that was asked for, and its
// port is taken to be the real one. kRejected: the peer's mapper does not know the port, since the listener did not
// register. kSilent: the mapper kept silent. kNoMapper: there is no mapper.
struct Answer {
  enum class Kind : std::uint8_t { kMapped, kRejected, kSilent, kNoMapper };
  Kind kind = Kind::kSilent;
  Endpoint to;
  friend bool operator==(const Answer&, const Answer&) = default;
};

// Asker is the connecting peer of one connection. The driver sends the datagrams of poll_tx to the accepting peer's
// port 3935 from one socket. It stops when answer() has a value and poll_tx returns nothing.
class Asker {
 public:
  struct Settings {
    std::chrono::milliseconds interval{1000};  // between Requests
    unsigned tries = 5;                        // Requests sent, including the first; at least 1
  };
  // The question is: which endpoint really listens for `accepting`? The connection will come from `connecting`.
  // assochandle: random, as only it distinguishes an answer from a forgery.
  struct Question {
    IpVersion ip = IpVersion::k4;
    std::uint64_t assochandle = 0;
    Endpoint accepting;
    Endpoint connecting;
  };

  Asker(const Question& question, const Settings& settings, TimePoint now);

  // ---- outputs
  // The next datagram to send; empty for none. Valid until the next call of any function.
  ConstBytes poll_tx();
  std::optional<TimePoint> next_timeout() const;
  const std::optional<Answer>& answer() const { return answer_; }

  // ---- inputs
  // A datagram of the accepting peer; false if it does not answer the question and was ignored.
  bool on_rx(ConstBytes octets);
  // No socket receives there (ICMP port unreachable).
  void on_refused();
  void on_timeout(TimePoint now);

 private:
  void end(Answer::Kind kind, const Endpoint& to);
  void queue(const Message& message);

  const Question question_;
  const Settings settings_;
  unsigned num_sent_ = 0;
  TimePoint next_;
  std::optional<Answer> answer_;
  std::array<std::uint8_t, kMaxMessageLen> tx_{};
  std::size_t tx_len_ = 0;
};

// Answerer is the accepting peer. It keeps no state of the asking peers: an Accept depends on the Request and `lookup`
// alone, and is repeated as often as the Request. The answers in a second are bounded, and no answer is longer than its
// Request.
class Answerer {
 public:
  struct Settings {
    unsigned per_second = 1000;
    unsigned burst = 1000;
  };
  struct Counters {
    std::uint64_t accepts = 0;
    std::uint64_t rejects = 0;
    std::uint64_t acks = 0;        // received
    std::uint64_t ignored = 0;     // malformed, or not meant for an accepting peer
    std::uint64_t over_limit = 0;  // Requests that got no answer
  };
  // The endpoint to connect to instead of the one asked for; nothing if no id listens there.
  using Lookup = absl::FunctionRef<std::optional<Endpoint>(IpVersion, const Endpoint&)>;

  Answerer() : Answerer(Settings{}) {}
  explicit Answerer(const Settings& settings);

  // Takes a datagram. Returns the length of the answer to its sender, 0 for none. out: kMessageLen octets.
  std::size_t on_rx(ConstBytes octets, Lookup lookup, TimePoint now, MutBytes out);
  // Whether a Request got no answer because of the limit.
  bool limited() const { return limited_; }
  const Counters& counters() const { return counters_; }

 private:
  bool take(TimePoint now);

  const Duration cost_;   // of one answer
  const Duration ahead_;  // how far the bill may run ahead of the clock
  TimePoint paid_until_{};
  bool limited_ = false;
  Counters counters_;
};

}  // namespace weft::verbs::soft::iwpm
