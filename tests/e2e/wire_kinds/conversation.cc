#include "conversation.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "mpa/testing/naive_framer.h"

namespace weft::e2e {

namespace {

std::string_view name(End end) {
  return end == End::kInitiator ? "initiator" : "responder";
}

bool same(const std::optional<rdmap::Terminate>& terminate, Triple what) {
  return terminate && static_cast<std::uint8_t>(terminate->layer) == what.layer && terminate->etype == what.etype &&
         terminate->code == what.code;
}

// The Private Data without the words of RFC 6581.
Octets ulp_data(const Startup& startup) {
  constexpr std::uint8_t kS = 0x10;
  const Octets& all = startup.private_data;
  return {all.begin() + ((startup.res & kS) != 0 ? 4 : 0), all.end()};
}

}  // namespace

Conversation::Conversation(Capture& capture, Setup setup)
    : capture_(capture), setup_(std::move(setup)), initiator_(setup_.initiator), responder_(setup_.responder) {
  capture_.begin(setup_.name);
}

void Conversation::inject(End from, const Startup& startup) {
  deliver(from, startup.octets(), {startup});
}

void Conversation::inject(End from, const Ulpdu& ulpdu) {
  mpa::testing::NaiveFramer framer(setup_.crc, setup_.markers, position_[index(from)]);
  deliver(from, framer.frame(ulpdu.octets()), {ulpdu});
}

void Conversation::post(End from, rdmap::SendWr wr) {
  if (side(from).stream.post_send(std::move(wr)) != rdmap::PostResult::kOk)
    fail(fmt::format("the {} refused a request", name(from)));
}

void Conversation::pump() {
  bool moved = true;
  while (moved) {
    moved = step(End::kInitiator);
    moved = step(End::kResponder) || moved;
  }
  for (End end : {End::kInitiator, End::kResponder})
    if (!expected_[index(end)].empty())
      fail(fmt::format("the {} did not send {} segments", name(end), expected_[index(end)].size()));
}

bool Conversation::step(End from) {
  rdmap::testing::Side& sender = side(from);
  rdmap::testing::Side& receiver = side(other(from));
  bool moved = false;
  // One octet asked for gives one frame or FPDU: no batch holds less.
  const auto views = sender.stream.tx_buffers(setup_.emss, 1, now);
  if (!views.empty()) {
    Octets octets;
    for (ConstBytes view : views) octets.insert(octets.end(), view.begin(), view.end());
    sender.stream.on_tx(octets.size(), now);
    auto& expected = expected_[index(from)];
    if (expected.empty()) fail(fmt::format("the {} sent a segment too many: {}", name(from), hex(octets)));
    Segment segment = std::move(expected.front());
    expected.pop_front();
    deliver(from, std::move(octets), std::move(segment));
    moved = true;
  } else if (const auto action = sender.stream.llp_action(); action != rdmap::LlpAction::kNone) {
    sender.stream.on_llp_action_done(action);
    if (!std::exchange(fin_[index(from)], true)) receiver.stream.on_rx_eof(now);
    moved = true;
  }
  sender.drain();
  receiver.drain();
  return moved;
}

void Conversation::deliver(End from, Octets octets, Segment segment) {
  Json json;
  if (auto* startup = std::get_if<Startup>(&segment.what)) {
    json["startup"] = startup->json();
  } else {
    Ulpdu& ulpdu = std::get<Ulpdu>(segment.what);
    if (segment.damage == Damage::kLeadingPointer) octets[3] = 4;
    if (segment.damage == Damage::kLastOctet) {
      octets[2 + ulpdu.octets().size() - 1] ^= 1;
      ulpdu.body.back() ^= 1;
      ulpdu.rdmap = hex(ulpdu.body);
    }
    json["fpdu"] = fpdu_json(from, ulpdu, segment.damage);
  }
  capture_.segment(from == End::kInitiator, octets, json);
  side(other(from)).receive(octets, now);
  side(other(from)).drain();
}

// RFC 5044 section 4: ULPDU_Length, ULPDU, PAD to a multiple of 4, CRC; a Marker wherever 512 octets went before, with
// the distance back to ULPDU_Length. tshark reads no FPDU right that has more than one, so the script must make none.
Json Conversation::fpdu_json(End from, const Ulpdu& ulpdu, Damage damage) {
  const std::size_t len = ulpdu.octets().size();
  const std::size_t pad = (4 - (2 + len) % 4) % 4;
  std::uint64_t& position = position_[index(from)];
  const std::uint64_t begin = position;
  position += 2 + len + pad + 4;
  Json json{{"ulpdu_length", len}, {"pad", hex(Octets(pad))}};
  if (setup_.markers) {
    json["markers"] = Json::array();
    const std::uint64_t marker = (begin + 511) / 512 * 512;
    if (marker < position) {
      position += 4;
      marker_places_.insert(static_cast<std::size_t>(marker - begin));
      json["markers"].push_back(damage == Damage::kLeadingPointer ? 4 : marker - begin);
      if (marker + 512 <= position) fail("an FPDU that tshark does not read");
    }
  }
  json["crc"] = !setup_.crc ? "unused" : damage == Damage::kLastOctet ? "bad" : "good";
  json.update(ulpdu.json());
  return json;
}

void Conversation::connect(std::size_t private_data_len) {
  connect(Startup{.m = setup_.markers, .c = setup_.crc, .private_data = pattern(1, private_data_len)},
          Startup{.reply = true, .m = setup_.markers, .c = setup_.crc, .private_data = pattern(2, private_data_len)});
}

void Conversation::connect(const Startup& asked, const Startup& reply) {
  request(asked);
  responder_.stream.accept(ulp_data(reply), responder_.recvs, setup_.responder.ird, setup_.responder.ord, 7, now);
  expect(End::kResponder, reply);
  pump();
  if (!initiator_.established || initiator_.established->private_data != ulp_data(reply))
    fail("the Reply did not arrive");
}

void Conversation::request(const Startup& request) {
  initiator_.stream.start_initiator(ulp_data(request), initiator_.recvs, now);
  responder_.stream.start_responder(now);
  expect(End::kInitiator, request);
  pump();
  if (!responder_.request || responder_.request->private_data != ulp_data(request)) fail("the Request did not arrive");
}

void Conversation::check_success(End end, std::size_t num) const {
  const auto& completions = (end == End::kInitiator ? initiator_ : responder_).completions;
  for (const rdmap::Completion& c : completions)
    if (c.status != rdmap::WorkStatus::kSuccess) fail(fmt::format("request {} of the {} failed", c.wr_id, name(end)));
  if (completions.size() != num)
    fail(fmt::format("{} requests of the {} are complete, not {}", completions.size(), name(end), num));
}

void Conversation::check_terminated(End by, Triple what) const {
  for (End end : {End::kInitiator, End::kResponder}) {
    const auto& closed = (end == End::kInitiator ? initiator_ : responder_).closed;
    const auto reason = end == by ? rdmap::CloseReason::kTerminateSent : rdmap::CloseReason::kTerminateReceived;
    if (closed.size() != 1 || closed[0].reason != reason || !same(closed[0].terminate, what))
      fail(fmt::format("the {} did not end by a Terminate {}/{}/{:02x}: {}", name(end), what.layer, what.etype,
                       what.code, closed.empty() ? "it is open" : closed[0].text));
  }
}

void Conversation::fail(const std::string& what) const {
  std::fprintf(stderr, "FAILED: %s: %s\n", setup_.name.c_str(), what.c_str());
  std::exit(1);
}

}  // namespace weft::e2e
