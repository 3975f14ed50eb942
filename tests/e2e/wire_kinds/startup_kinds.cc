#include <utility>

#include "conversation.h"
#include "kinds.h"

namespace weft::e2e {

namespace {

constexpr std::uint8_t kS = 0x10;  // RFC 6581 section 6: the first of the reserved bits

// The words of RFC 6581 section 9: A and IRD, C and D and ORD; B is the second bit.
constexpr std::uint16_t kA = 0x8000;
constexpr std::uint16_t kB = 0x4000;
constexpr std::uint16_t kC = 0x8000;
constexpr std::uint16_t kD = 0x4000;

Octets words(std::uint16_t first, std::uint16_t second, const Octets& ulp_data) {
  Octets out{static_cast<std::uint8_t>(first >> 8), static_cast<std::uint8_t>(first),
             static_cast<std::uint8_t>(second >> 8), static_cast<std::uint8_t>(second)};
  out.insert(out.end(), ulp_data.begin(), ulp_data.end());
  return out;
}

// One Send of the initiator's, which shows the agreed framing.
void speak(Conversation& c, std::uint32_t msn = 1) {
  rdmap::SendWr wr;
  wr.inline_data = pattern(5, 10);
  c.side(End::kResponder).memory.add_simple(1, 7, 0, 64);
  c.side(End::kResponder).recvs.post(0, {{0, 64, {1}}});
  c.expect(End::kInitiator, send(kSend, 0, msn, 0, wr.inline_data));
  c.post(End::kInitiator, std::move(wr));
  c.pump();
  c.check_success(End::kInitiator, 1);
}

void rejected(Capture& capture) {
  Conversation c(capture, Setup("rejected"));
  c.request(Startup{.private_data = pattern(1, 3)});
  c.side(End::kResponder).stream.reject(pattern(2, 5), c.now);
  c.expect(End::kResponder, Startup{.reply = true, .r = true, .private_data = pattern(2, 5)});
  c.pump();
  if (!c.side(End::kInitiator).rejected) c.fail("the initiator does not know that it was rejected");
}

// CRCs are on unless both ends say off.
void one_wants_crcs(Capture& capture, bool initiator) {
  Setup setup(initiator ? "C=1 of the initiator" : "C=1 of the responder");
  (initiator ? setup.responder : setup.initiator).crc = false;
  Conversation c(capture, std::move(setup));
  // A responder that was asked for CRCs says so too (RFC 5044 section 7.1.1 leaves it the choice).
  c.connect(Startup{.c = initiator}, Startup{.reply = true});
  speak(c);
}

Setup enhanced(std::string name) {
  Setup setup(std::move(name));
  setup.initiator.mpa_revision = setup.responder.mpa_revision = 2;
  setup.initiator.ird = 5;
  setup.initiator.ord = 6;
  setup.responder.ird = 6;
  setup.responder.ord = 5;
  return setup;
}

void client_server(Capture& capture) {
  Conversation c(capture, enhanced("revision 2"));
  c.connect(Startup{.res = kS, .rev = 2, .private_data = words(5, 6, pattern(1, 7))},
            Startup{.reply = true, .res = kS, .rev = 2, .private_data = words(6, 5, pattern(2, 8))});
  c.pump();
  speak(c);
}

// The RTR indication is an FPDU without payload, which the initiator sends first.
void peer_to_peer(Capture& capture, const std::string& kind, mpa::RtrSet rtr, std::uint16_t first, std::uint16_t second,
                  const Ulpdu& indication) {
  Setup setup = enhanced("revision 2, RTR by " + kind);
  setup.initiator.rtr_offered = rtr;
  Conversation c(capture, std::move(setup));
  c.expect(End::kInitiator, Startup{.res = kS, .rev = 2, .private_data = words(first | 5, second | 6, {})});
  auto& initiator = c.side(End::kInitiator);
  initiator.stream.start_initiator({}, initiator.recvs, c.now);
  c.side(End::kResponder).stream.start_responder(c.now);
  c.pump();
  auto& responder = c.side(End::kResponder);
  responder.stream.accept({}, responder.recvs, 6, 5, 7, c.now);
  c.expect(End::kResponder,
           Startup{.reply = true, .res = kS, .rev = 2, .private_data = words(first | 6, second | 5, {})});
  c.expect(End::kInitiator, indication);
  if (rtr.read) c.expect(End::kResponder, tagged(kReadResponse, 1, 0, {}));
  c.pump();
  speak(c, rtr.send ? 2 : 1);
}

}  // namespace

void startup_kinds(Capture& capture) {
  rejected(capture);
  one_wants_crcs(capture, true);
  one_wants_crcs(capture, false);
  client_server(capture);
  peer_to_peer(capture, "Send", {.send = true}, kA | kB, 0, send(kSend, 0, 1, 0, {}));
  peer_to_peer(capture, "RDMA Write", {.write = true}, kA, kC, tagged(kWrite, 1, 0, {}));
  peer_to_peer(capture, "RDMA Read", {.read = true}, kA, kD, read_request(1, {1, 0, 0, 1, 0}));
}

}  // namespace weft::e2e
