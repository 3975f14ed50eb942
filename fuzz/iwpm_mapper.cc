// The port mapper's datagrams: parse, emit, parse again; then as an answer to a question of ours and as a question to
// us.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <variant>

#include "verbs-shim/soft/iwpm/mapper.h"

namespace {

using namespace weft;
using namespace weft::verbs::soft::iwpm;

void check(bool holds) {
  if (!holds) std::abort();
}

const weft::TimePoint kNow{std::chrono::seconds(1)};

void check_message(weft::ConstBytes octets) {
  const auto parsed = parse_message(octets);
  const auto* message = std::get_if<Message>(&parsed);
  if (message == nullptr) return;
  std::array<std::uint8_t, kMaxMessageLen> out;
  out.fill(0xa5);
  const std::size_t len = emit_message(*message, out);
  check(len == octets.size());
  check(std::get<Message>(parse_message(weft::ConstBytes(out).first(len))) == *message);
}

// The handle of the corpus, so that the rest of an answer is looked at.
void check_asker(weft::ConstBytes octets) {
  for (const IpVersion ip : {IpVersion::k4, IpVersion::k6}) {
    const Endpoint asked{{192, 0, 2, 7}, 20049};
    Asker asker({ip, 0x0102030405060708, asked, {{198, 51, 100, 9}, 40001}}, {}, kNow);
    check(asker.poll_tx().size() == kRequestLen);
    const bool taken = asker.on_rx(octets);
    check(taken == asker.answer().has_value());
    if (!taken) {
      check(asker.poll_tx().empty() && asker.next_timeout().has_value());
      continue;
    }
    const Answer& answer = *asker.answer();
    check(answer.to.port != 0 && !asker.next_timeout());
    check(answer.kind == Answer::Kind::kMapped ? asker.poll_tx().size() == kMessageLen
                                               : answer.to == asked && asker.poll_tx().empty());
  }
}

void check_answerer(weft::ConstBytes octets) {
  Answerer answerer;
  std::array<std::uint8_t, kMessageLen> out;
  for (const bool listening : {false, true}) {
    out.fill(0xa5);
    const std::size_t len = answerer.on_rx(
        octets, [&](IpVersion, const Endpoint& asked) { return listening ? std::optional(asked) : std::nullopt; }, kNow,
        out);
    check(len == 0 || (len == kMessageLen && octets.size() == kRequestLen));
    if (len == 0) continue;
    const auto reply = std::get<Message>(parse_message(out));
    const auto request = std::get<Message>(parse_message(octets));
    check(reply.type == (listening ? MessageType::kAccept : MessageType::kReject));
    check(reply.assochandle == request.assochandle && reply.accepting == request.accepting &&
          reply.connecting == request.connecting);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes octets(data, size);
  check_message(octets);
  check_asker(octets);
  check_answerer(octets);
  return 0;
}
