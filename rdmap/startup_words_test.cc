// A startup that fails tells why in one line for people. For each way in which a peer, or a program that is no peer,
// can fail it, the test names the words that the line must contain.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "mpa/startup.h"
#include "rdmap/testing/pair.h"

namespace weft::rdmap {
namespace {

using testing::Side;
const TimePoint kNow{};

using Octets = std::vector<std::uint8_t>;

Octets octets_of(std::string_view text) {
  return {text.begin(), text.end()};
}

Octets reply(std::function<void(mpa::StartupFrame&)> change, mpa::EnhancedWords words = {.ird = 16, .ord = 16}) {
  mpa::StartupFrame frame;
  frame.kind = mpa::FrameKind::kReply;
  frame.c = frame.s = true;
  frame.rev = 2;
  mpa::emit_enhanced_words(words, frame.private_data);
  change(frame);
  Octets out;
  mpa::emit_startup_frame(frame, out);
  return out;
}

struct Ask {
  StreamConfig config = {};
  std::size_t private_data = 0;
};

// The line that an initiator ends with after `answer`.
std::string initiator_says(const Ask& ask, const std::function<void(Side&)>& answer) {
  Side side(ask.config);
  side.stream.start_initiator(Octets(ask.private_data), side.recvs, kNow);
  side.transmit(kNow);
  answer(side);
  side.drain();
  if (side.closed.empty()) {  // a Terminate is on its way out
    side.transmit(kNow);
    side.stream.on_rx_eof(kNow);
    side.drain();
  }
  return side.closed.empty() ? "still there" : side.closed[0].text;
}
std::string initiator_hears(const Octets& octets, const Ask& ask = {}) {
  return initiator_says(ask, [&](Side& side) { side.receive(octets, kNow); });
}
std::string responder_hears(const Octets& octets, const StreamConfig& config = {}) {
  Side side(config);
  side.stream.start_responder(kNow);
  side.receive(octets, kNow);
  side.drain();
  if (side.closed.empty()) {
    side.transmit(kNow);
    side.stream.on_rx_eof(kNow);
    side.drain();
  }
  return side.closed.empty() ? "still there" : side.closed[0].text;
}

void expect_says(const std::string& line, const std::vector<std::string>& parts) {
  SCOPED_TRACE(line);
  EXPECT_EQ(line.find('\n'), line.npos);
  for (const std::string& part : {std::string("Likely cause: "), std::string("Try: ")})
    EXPECT_NE(line.find(part), line.npos) << part;
  for (const std::string& part : parts) EXPECT_NE(line.find(part), line.npos) << part;
}

TEST(StartupWords, ForeignPeersAreShownAndNamed) {
  expect_says(initiator_hears(octets_of("HTTP/1.1 400 Bad Request\r\n\r\n")),
              {"\"HTTP/1.1 400 Bad Request\\x0d", "which is HTTP", "[MPA-7.1.2-15]", "the port of an iWARP program"});
  expect_says(initiator_hears(octets_of("\x1b]0;evil\x07")), {"\"\\x1b]0;evil\\x07\"", "not an iWARP program"});
  expect_says(responder_hears(octets_of("GET / HTTP/1.1\r\n")),
              {"which is HTTP", "a client that does not speak iWARP"});
  const Octets null_call = {0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3};
  expect_says(responder_hears(null_call), {"ONC RPC over plain TCP", "iWARP chosen at the client"});
  // However much it says, the line stays short.
  EXPECT_LT(initiator_hears(Octets(4000, 'x')).size(), 1000u);
}

TEST(StartupWords, BothInitiators) {
  expect_says(initiator_hears(octets_of("MPA ID Req Frame")), {"both ends are initiators", "[MPA-7.1.2-18]"});
}

TEST(StartupWords, RevisionsAndForms) {
  expect_says(initiator_hears(reply([](auto& f) { f.rev = 3; })), {"Rev 3 to our Rev 2", "SoftConfig::mpa_revision 1"});
  expect_says(initiator_hears(reply([](auto& f) { f.s = false; })),
              {"unenhanced MPA Reply", "SoftConfig::mpa_revision 1"});
  StreamConfig first;
  first.mpa_revision = 1;
  Octets request;
  mpa::emit_startup_frame(mpa::make_request({}, {}), request);
  expect_says(responder_hears(request, first), {"MPA Rev 2 is not enabled here (Rev 2)", "SoftConfig::mpa_revision 2"});
  request[17] = 0;
  expect_says(responder_hears(request), {"RDMAC", "SoftConfig::mpa_revision 0"});
}

TEST(StartupWords, SilenceAndEnds) {
  expect_says(initiator_says({}, [](Side& side) { side.stream.on_timeout(kNow + std::chrono::seconds(10)); }),
              {"no whole MPA Reply within 10 s", "[MPA-7.1.2-23]", "the port of an iWARP program"});
  expect_says(initiator_says({}, [](Side& side) { side.stream.on_rx_eof(kNow); }),
              {"closed the connection during MPA startup", "Linux siw closes without a word"});
  expect_says(initiator_says({.private_data = 300}, [](Side& side) { side.stream.on_rx_eof(kNow); }),
              {"our PD_Length is 304", "SoftConfig::peer siw"});
  expect_says(initiator_says({}, [](Side& side) { side.stream.on_llp_error(ECONNRESET, kNow); }),
              {"Connection reset by peer during MPA startup"});
  expect_says(initiator_says({},
                             [](Side& side) {
                               side.receive(octets_of("MPA ID"), kNow);
                               side.stream.on_rx_eof(kNow);
                             }),
              {"inside a frame of MPA startup"});
}

TEST(StartupWords, ARejectionNamesWhatPeersAreKnownToMind) {
  const auto rejected = reply([](auto& f) { f.r = true; });
  const std::string plain = initiator_hears(rejected);
  expect_says(plain, {"R=1", "the peer's log"});
  EXPECT_EQ(plain.find("Markers"), plain.npos) << plain;
  EXPECT_EQ(plain.find("IRD"), plain.npos) << plain;

  StreamConfig markers;
  markers.markers = true;
  expect_says(initiator_hears(rejected, {markers}), {"we asked for Markers", "without SoftConfig::markers"});
  StreamConfig first;
  first.mpa_revision = 1;
  const auto rejected_first = reply([](auto& f) {
    f.r = true;
    f.rev = 1;
    f.s = false;
    f.private_data.clear();
  });
  expect_says(initiator_hears(rejected_first, {first}),
              {"revision 1, which tells no IRD", "SoftConfig::mpa_revision 2"});
  StreamConfig none;
  none.ird = 0;
  expect_says(initiator_hears(rejected, {none}), {"we offered IRD 0", "SoftConfig::ird 1"});
  StreamConfig few;
  few.ird = 2;
  expect_says(initiator_hears(reply([](auto& f) { f.r = true; }, {.ird = 1, .ord = 9}), {few}),
              {"the peer wants 9 RDMA Reads at once and we offered IRD 2", "SoftConfig::ird 9"});
  const auto said = reply([](auto& f) {
    f.r = true;
    f.private_data.insert(f.private_data.end(), {'n', 'o', '\n'});
  });
  expect_says(initiator_hears(said), {"with private data \"no\\x0a\""});
}

TEST(StartupWords, RepliesThatCannotBeLivedWith) {
  expect_says(initiator_hears(reply([](auto&) {}, {.ird = 16, .ord = 200})),
              {"the responder's ORD is above our IRD", "(2/0/06)", "[MPA2-9.1-13]", "SoftConfig::ird"});
  expect_says(initiator_hears(reply([](auto&) {}, {.a = true, .c = true, .ird = 16, .ord = 16})),
              {"the other connection model", "(2/0/07)", "SoftConfig::rtr"});
}

TEST(StartupWords, OwnPrivateDataThatDoesNotFit) {
  expect_says(initiator_says({.private_data = 509}, [](Side&) {}), {"509 bytes", "[MPA-7.1.1-24]"});
}

}  // namespace
}  // namespace weft::rdmap
