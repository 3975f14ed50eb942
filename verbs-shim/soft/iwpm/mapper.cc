#include "verbs-shim/soft/iwpm/mapper.h"

#include <algorithm>
#include <variant>

namespace weft::verbs::soft::iwpm {
namespace {

enum class Scope : std::uint8_t { kUnspecified, kLoopback, kMulticast, kOther };

Scope scope4(ConstBytes octets) {
  if (std::ranges::all_of(octets, [](std::uint8_t octet) { return octet == 0; })) return Scope::kUnspecified;
  if (octets[0] == 127) return Scope::kLoopback;
  return octets[0] >= 224 ? Scope::kMulticast : Scope::kOther;  // this includes broadcast
}

Scope scope6(ConstBytes octets) {
  constexpr std::array<std::uint8_t, 12> kMapped4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::ranges::equal(octets.first(kMapped4.size()), kMapped4)) return scope4(octets.subspan(kMapped4.size()));
  if (octets[0] == 0xff) return Scope::kMulticast;
  const bool zeros = std::ranges::all_of(octets.first(15), [](std::uint8_t octet) { return octet == 0; });
  if (!zeros || octets[15] > 1) return Scope::kOther;
  return octets[15] == 1 ? Scope::kLoopback : Scope::kUnspecified;
}

Scope scope_of(IpVersion ip, const Address& address) {
  return ip == IpVersion::k4 ? scope4(ConstBytes(address).first(4)) : scope6(address);
}

// The endpoint that an Accept leads to (PEER-M-02); nothing if the Accept must not be followed.
std::optional<Endpoint> led_to(IpVersion ip, const Endpoint& asked, Endpoint told) {
  if (told.port == 0) return std::nullopt;
  switch (scope_of(ip, told.address)) {
    case Scope::kUnspecified: told.address = asked.address; return told;
    case Scope::kLoopback:
      // No other machine may send us to services of our own.
      if (scope_of(ip, asked.address) != Scope::kLoopback) return std::nullopt;
      return told;
    case Scope::kMulticast: return std::nullopt;
    case Scope::kOther: return told;
  }
  return std::nullopt;
}

}  // namespace

Asker::Asker(const Question& question, const Settings& settings, TimePoint now)
    : question_(question), settings_(settings), next_(now) {
  on_timeout(now);
}

void Asker::queue(const Message& message) {
  tx_len_ = emit_message(message, tx_);
}

ConstBytes Asker::poll_tx() {
  const ConstBytes out = ConstBytes(tx_).first(tx_len_);
  tx_len_ = 0;
  return out;
}

std::optional<TimePoint> Asker::next_timeout() const {
  if (answer_) return std::nullopt;
  return next_;
}

void Asker::on_timeout(TimePoint now) {
  if (answer_ || now < next_) return;
  if (num_sent_ >= std::max(settings_.tries, 1U)) return end(Answer::Kind::kSilent, question_.accepting);
  ++num_sent_;
  next_ = now + settings_.interval;
  queue({.type = MessageType::kRequest,
         .ip = question_.ip,
         .assochandle = question_.assochandle,
         .accepting = question_.accepting,
         .connecting = question_.connecting,
         .mapped_connecting = question_.connecting});  // our port is not mapped
}

// PEER-M-01: without an Accept the connection goes to the port as it is.
void Asker::on_refused() {
  if (!answer_) end(Answer::Kind::kNoMapper, question_.accepting);
}

bool Asker::on_rx(ConstBytes octets) {
  if (answer_) return false;
  const auto parsed = parse_message(octets);
  const auto* message = std::get_if<Message>(&parsed);
  if (message == nullptr || message->ip != question_.ip || message->assochandle != question_.assochandle) return false;
  if (message->type == MessageType::kReject) {
    end(Answer::Kind::kRejected, question_.accepting);
    return true;
  }
  if (message->type != MessageType::kAccept) return false;
  const auto to = led_to(question_.ip, question_.accepting, message->accepting);
  if (!to) return false;
  end(Answer::Kind::kMapped, *to);
  // The mapper repeats its Accept until it hears the Ack. The Ack has the Accept's own contents.
  Message ack = *message;
  ack.type = MessageType::kAck;
  queue(ack);
  return true;
}

void Asker::end(Answer::Kind kind, const Endpoint& to) {
  answer_ = Answer{kind, to};
  tx_len_ = 0;
}

Answerer::Answerer(const Settings& settings)
    : cost_(Duration(std::chrono::seconds(1)) / std::max(settings.per_second, 1U)),
      ahead_(cost_ * std::max(settings.burst, 1U)) {}

bool Answerer::take(TimePoint now) {
  const TimePoint from = std::max(paid_until_, now);
  if (from + cost_ - now > ahead_) return false;
  paid_until_ = from + cost_;
  return true;
}

std::size_t Answerer::on_rx(ConstBytes octets, Lookup lookup, TimePoint now, MutBytes out) {
  const auto parsed = parse_message(octets);
  const auto* message = std::get_if<Message>(&parsed);
  if (message != nullptr && message->type == MessageType::kAck) {
    ++counters_.acks;
    return 0;
  }
  if (message == nullptr || message->type != MessageType::kRequest) {
    ++counters_.ignored;
    return 0;
  }
  if (!take(now)) {
    limited_ = true;
    ++counters_.over_limit;
    return 0;
  }
  Message reply = *message;
  const auto found = lookup(message->ip, message->accepting);
  ++(found ? counters_.accepts : counters_.rejects);
  reply.type = found ? MessageType::kAccept : MessageType::kReject;
  if (found) reply.accepting = *found;
  return emit_message(reply, out);
}

}  // namespace weft::verbs::soft::iwpm
