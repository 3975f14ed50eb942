#include "mpa/startup_fault.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/begins_with.h"
#include "mpa/wire/cursor.h"

namespace weft::mpa {
namespace {

constexpr StartupHint kHints[] = {
    {StartupFault::kForeign, "MPA-7.1.2-15", "the program on that port is not an iWARP program",
     "the port of an iWARP program; a listener for iWARP at the peer",
     "a client that does not speak iWARP came to this port",
     "iWARP chosen at the client; otherwise nothing, it was turned away"},
    {StartupFault::kBothInitiators, "MPA-7.1.2-18",
     "both ends connect, or the program on that port sends back what it receives", "one end as listener; another port",
     "", ""},
    {StartupFault::kBothResponders, "MPA-7.1.2-15", "", "", "the peer takes itself for the listener, too",
     "one end as initiator"},
    {StartupFault::kRevision, "MPA-7.1.1-17", "the peer does not know the revision that it was asked with",
     "SoftConfig::mpa_revision 1 (SoftConfig::mpa_revision 0 for RDMAC peers)",
     "the peer asks with a revision that is not served here",
     "SoftConfig::mpa_revision 2 here (SoftConfig::mpa_revision 0 where peers are RDMAC's), or an older revision at "
     "the peer"},
    {StartupFault::kRdmacBits, "MPA-C.2.4-01", "an RDMAC peer that wants no Markers or no CRCs",
     "Markers and CRCs switched on at the peer", "an RDMAC peer that wants no Markers or no CRCs",
     "Markers and CRCs switched on at the peer"},
    {StartupFault::kPrivateDataLen, "MPA-7.1.1-22", "the peer's program sends more than MPA carries",
     "less private data at the peer", "the peer's program sends more than MPA carries",
     "less private data at the peer"},
    {StartupFault::kNoWords, "MPA2-10-01",
     "the peer has MPA revision 2, but not the enhanced startup that goes with it", "SoftConfig::mpa_revision 1",
     "the peer has MPA revision 2, but not the enhanced startup that goes with it", "MPA revision 1 at the peer"},
    {StartupFault::kSurplus, "MPA-7.1.1-21", "the program on that port sends first, so it is not an iWARP program",
     "the port of an iWARP program", "the peer does not wait for the Reply before it sends on",
     "the peer's version: Linux siw turns it away, too"},
    {StartupFault::kSilent, "MPA-7.1.2-23",
     "the program on that port is not an iWARP program and waits for other messages, or it is an iWARP program that "
     "hangs",
     "the port of an iWARP program; at the peer, whether its program runs",
     "a port scan or a health check, or a client that does not speak iWARP", "nothing, unless a client complains"},
    {StartupFault::kClosed, "MPA2-10-04",
     "the program on that port is not an iWARP program, or does not know this MPA revision; Linux siw closes without a "
     "word on a Key or a revision that it does not know, on more than 256 bytes of private data, and if it has no "
     "memory",
     "the port of an iWARP program; SoftConfig::mpa_revision 1; SoftConfig::peer siw",
     "a port scan or a health check, or a client that gave up", "nothing, unless a client complains"},
    {StartupFault::kCutShort, "MPA-7.1.1-21", "the peer's program ended while it answered", "the peer's log",
     "the peer's program ended while it asked", "the peer's log"},
    {StartupFault::kLost, "MPA-8-03",
     "the peer's program ended, is no iWARP program and got bytes that it did not expect, or a firewall cut the "
     "connection",
     "the port of an iWARP program; whether the peer's program still runs",
     "the peer's program ended, or a firewall cut the connection", "whether the peer's program still runs"},
    {StartupFault::kNoRtr, "MPA2-9.2-09", "", "",
     "the initiator asked for the peer-to-peer model and did not send its ready-to-receive message",
     "at the initiator SoftConfig::rtr none or write"},
    {StartupFault::kRejected, "MPA-7.1.1-12", "the program at the peer does not want this connection, or has too many",
     "the peer's log", "", ""},
    {StartupFault::kOwnPrivateData, "MPA-7.1.1-24", "MPA carries 512 bytes, and 4 fewer at revision 2",
     "less private data", "MPA carries 512 bytes, and 4 fewer at revision 2", "less private data"},
};

// RFC 8446 section 5.1: content type, then a version of 3.something.
bool is_tls(ConstBytes octets) {
  constexpr std::uint8_t kAlert = 21, kHandshake = 22;
  return octets.size() >= 3 && (octets[0] == kAlert || octets[0] == kHandshake) && octets[1] == 3 && octets[2] <= 4;
}

// RFC 5531 sections 9 and 11: a record mark, then the header of a Call of RPC version 2, or of a Reply.
bool is_rpc_record(ConstBytes octets) {
  constexpr std::uint32_t kLastFragment = 0x80000000, kMostLikely = 1 << 24;
  Reader reader(octets);
  std::uint32_t mark = 0, xid = 0, type = 0, word = 0;
  if (!reader.u32(mark) || !reader.u32(xid) || !reader.u32(type) || !reader.u32(word)) return false;
  if ((mark & kLastFragment) == 0 || (mark & ~kLastFragment) > kMostLikely) return false;
  return type == 0 ? word == 2 : type == 1 && word <= 1;
}

// perftest sends its version first, 16 octets padded with NULs: "6.29".
bool is_perftest(ConstBytes octets) {
  constexpr std::size_t kLen = 16;
  if (octets.size() < kLen || octets[0] < '0' || octets[0] > '9' || octets[kLen - 1] != 0) return false;
  const auto text = octets.first(kLen);
  const auto end = std::ranges::find(text, std::uint8_t{0});
  return std::ranges::count(text.begin(), end, std::uint8_t{'.'}) == 1 &&
         std::all_of(text.begin(), end, [](std::uint8_t c) { return c == '.' || (c >= '0' && c <= '9'); }) &&
         std::all_of(end, text.end(), [](std::uint8_t c) { return c == 0; });
}

std::string hex_escape(std::uint8_t octet) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  return {'\\', 'x', kHex[octet >> 4], kHex[octet & 0x0f]};
}

}  // namespace

std::span<const StartupHint> startup_hints() {
  return kHints;
}

const StartupHint& startup_hint(StartupFault fault) {
  for (const StartupHint& hint : kHints)
    if (hint.fault == fault) return hint;
  assert(false);
  return kHints[0];
}

std::string_view foreign_protocol(ConstBytes octets) {
  for (const std::string_view http :
       {"HTTP/", "GET ", "HEAD ", "POST ", "PUT ", "OPTIONS ", "CONNECT ", "PRI * HTTP/2"})
    if (begins_with(octets, http)) return "HTTP";
  if (begins_with(octets, "SSH-")) return "SSH";
  if (begins_with(octets, "220 ") || begins_with(octets, "220-")) return "SMTP or FTP";
  if (is_tls(octets)) return "TLS";
  if (is_rpc_record(octets)) return "ONC RPC over plain TCP";
  if (is_perftest(octets)) return "perftest's exchange of parameters over plain TCP";
  return {};
}

std::string printable(ConstBytes octets, std::size_t most_octets) {
  constexpr std::size_t kLongRun = 4;
  const ConstBytes shown = octets.first(std::min(octets.size(), most_octets));
  std::string text = "\"";
  for (std::size_t i = 0; i < shown.size();) {
    const std::uint8_t octet = shown[i];
    if (octet >= 0x20 && octet < 0x7f && octet != '"' && octet != '\\') {
      text += static_cast<char>(octet);
      ++i;
      continue;
    }
    std::size_t run = 1;
    while (i + run < shown.size() && shown[i + run] == octet) ++run;
    if (run < kLongRun) run = 1;
    text += hex_escape(octet);
    if (run > 1) text += "{" + std::to_string(run) + "}";
    i += run;
  }
  text += octets.size() > most_octets ? "\"..." : "\"";
  return text;
}

}  // namespace weft::mpa
