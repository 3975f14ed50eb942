#include "mpa/startup.h"

#include <algorithm>
#include <cassert>

#include "requirements/violates.h"

namespace weft::mpa {
namespace {

constexpr std::uint16_t kManual = EnhancedWords::kManual;
// The least IRD of a responder for an RTR indication by RDMA Read (RFC 6581 section 9.1).
constexpr std::uint16_t kRtrReadSlots = 1;

// MPA2-9.1-16: 0x3fff is not a number of Reads.
std::optional<std::uint16_t> number(std::uint16_t word) {
  if (word == kManual) return std::nullopt;
  return word;
}

std::uint16_t at_most(std::uint16_t own, std::optional<std::uint16_t> peer) {
  return peer ? std::min(own, *peer) : own;
}

void add_private_data(StartupFrame& frame, ConstBytes private_data) {
  assert(private_data.size() <= kMaxPrivateDataLen - frame.private_data.size());
  frame.private_data.insert(frame.private_data.end(), private_data.begin(), private_data.end());
}

// The Reply has C=1 if we or the Request want CRCs: initiators that insist on CRCs refuse a Reply with C=0 (MPA-A-14).
StartupFrame make_reply(const StartupFrame& request, const StartupOptions& options, bool reject,
                        const std::optional<EnhancedWords>& words, ConstBytes private_data) {
  StartupFrame reply;
  reply.kind = FrameKind::kReply;
  reply.m = options.markers && !reject;
  reply.c = options.crc || request.c;
  reply.r = reject;
  reply.rev = std::min(request.rev, options.revision);
  if (words) {
    reply.s = true;  // MPA2-10-01
    emit_enhanced_words(*words, reply.private_data);
  }
  add_private_data(reply, private_data);
  return reply;
}

// The responder's answer about RTR indications (MPA2-9.2-04 to -08).
EnhancedWords answer_rtr(const EnhancedWords& asked, const RtrSet& own) {
  EnhancedWords words;
  words.a = asked.a;
  if (!asked.a) return words;  // MPA2-9.2-13
  words.b = asked.b && own.send;
  words.c = asked.c && own.write;
  words.d = asked.d && own.read;
  if (words.b || words.c || words.d) return words;
  if (own.write)
    words.c = true;
  else if (own.read)
    words.d = true;
  else
    words.b = true;
  return words;
}

// Sets the responder's own IRD and ORD, and the values in its Reply (RFC 6581 section 9.1).
EnhancedWords answer_words(const EnhancedWords& asked, const StartupOptions& options, Agreement& agreement) {
  EnhancedWords words = answer_rtr(asked, options.rtr_understood);
  agreement.rtr_awaited = {words.b, words.c, words.d};
  agreement.peer_ird = number(asked.ird);
  agreement.peer_ord = number(asked.ord);
  if (agreement.peer_ird) {
    agreement.ord = at_most(options.ord, agreement.peer_ird);  // MPA2-9.1-09
    words.ord = agreement.ord;
  } else {
    agreement.ord = options.ord;
    words.ord = kManual;  // MPA2-9.1-18
  }
  agreement.ird = at_most(options.ird, agreement.peer_ord);
  // MPA2-9.1-08: a Reply that accepts the Read as indication needs a slot for it, even if the ULP itself serves no
  // Read.
  if (words.d) agreement.ird = std::max(agreement.ird, kRtrReadSlots);
  words.ird = agreement.peer_ord ? agreement.ird : kManual;  // MPA2-9.1-17
  return words;
}

constexpr std::string_view kNoWords = "an enhanced MPA startup frame (S=1) without IRD and ORD";

// Whether the frame has the bits that an RDMAC implementation always sends (RFC 5044 section C.1).
bool is_rdmac(const StartupFrame& frame) {
  return frame.rev == 0 && frame.m && frame.c;
}

// own: which of the two frames is ours. Each M is about the FPDUs that its sender receives (MPA-7.1.1-06). But RDMAC
// peers use Markers in both directions, whatever we asked for (MPA-C.2.3-01).
void agree_on_framing(const StartupFrame& request, const StartupFrame& reply, FrameKind own, Agreement& agreement) {
  const bool rdmac = reply.rev == 0;
  const bool ours = own == FrameKind::kRequest ? request.m : reply.m;
  const bool theirs = own == FrameKind::kRequest ? reply.m : request.m;
  agreement.revision = reply.rev;
  agreement.version = rdmac ? 0 : 1;
  agreement.crc = request.c || reply.c;  // MPA-4.4-06, MPA-C.1-04
  agreement.markers_rx = ours || rdmac;
  agreement.markers_tx = theirs || rdmac;
}

std::string_view cannot_serve(std::uint8_t rev) {
  switch (rev) {
    case 0: return "MPA Rev 0 (RDMAC) is not served";
    case 2: return "MPA Rev 2 is not enabled here";
    default: return "unknown MPA Rev";
  }
}

// A Read needs a slot of the peer's, whatever our own ORD is (MPA2-9.1-08).
Rtr choose_rtr(const RtrSet& own, const EnhancedWords& agreed) {
  if (own.write && agreed.c) return Rtr::kWrite;  // costs the peer neither a buffer nor a Read slot
  if (own.read && agreed.d && agreed.ird > 0) return Rtr::kRead;
  if (own.send && agreed.b) return Rtr::kSend;
  return Rtr::kNone;
}

std::variant<Agreement, Unagreeable> settle(const EnhancedWords& words, const EnhancedWords& asked,
                                            const StartupOptions& options, Agreement agreement) {
  const auto unagreeable = [&](Error error, std::string_view reason) { return Unagreeable{error, reason, agreement}; };
  agreement.peer_ird = number(words.ird);
  agreement.peer_ord = number(words.ord);
  agreement.ird = options.ird;
  agreement.ord = at_most(options.ord, agreement.peer_ird);  // MPA2-9.1-12, MPA2-9.1-19
  if (violates("MPA2-9.1-13", agreement.peer_ord && *agreement.peer_ord > options.ird))
    return unagreeable(Error::kInsufficientIrd, "the responder's ORD is above our IRD");
  if (violates("MPA2-9.2-04", words.a != asked.a))
    return unagreeable(Error::kNoMatchingRtr, "the MPA Reply is for the other connection model (A flag)");
  if (words.a) {
    agreement.rtr = choose_rtr(options.rtr_offered, words);
    if (violates("MPA2-9.2-10", agreement.rtr == Rtr::kNone))
      return unagreeable(Error::kNoMatchingRtr, "no RTR indication that both ends can do");
  }
  return agreement;
}

}  // namespace

StartupFrame make_request(const StartupOptions& options, ConstBytes private_data) {
  StartupFrame request;
  request.kind = FrameKind::kRequest;
  request.m = options.markers;
  request.c = options.crc;
  request.rev = request_revision(options);
  if (request.rev >= kEnhancedRevision) {  // MPA2-6-07
    request.s = true;
    EnhancedWords words;
    words.a = options.rtr_offered.any();  // MPA2-9.2-02, MPA2-9.2-12
    words.b = options.rtr_offered.send;
    words.c = options.rtr_offered.write;
    words.d = options.rtr_offered.read;
    words.ird = options.ird;
    words.ord = options.ord;
    emit_enhanced_words(words, request.private_data);
  }
  add_private_data(request, private_data);
  return request;
}

std::variant<Acceptable, Refused, BadFrame> evaluate_request(const StartupFrame& request,
                                                             const StartupOptions& options) {
  if (request.rev == 0 && !options.permissive) {  // MPA-A-02
    StartupFrame reply;
    reply.kind = FrameKind::kReply;
    reply.c = options.crc || request.c;
    reply.r = true;
    reply.rev = 1;
    return Refused{std::move(reply), cannot_serve(0)};
  }
  if (violates("MPA-C.2.4-01", request.rev == 0 && !is_rdmac(request)))  // MPA-A-19
    return BadFrame{Error::kStartupFrame, "an MPA startup frame of Rev 0 without M=1 and C=1",
                    StartupFault::kRdmacBits};
  if (violates("MPA-7.1.1-17", request.rev > options.revision || request.rev > kEnhancedRevision))
    return BadFrame{Error::kStartupFrame, cannot_serve(request.rev), StartupFault::kRevision};
  if (violates("MPA2-6-11", request.enhanced() && !parse_enhanced_words(request)))
    return BadFrame{Error::kStartupFrame, kNoWords, StartupFault::kNoWords};
  Acceptable acceptable;
  acceptable.revision = request.rev;
  if (const auto words = parse_enhanced_words(request)) {
    acceptable.peer_ird = number(words->ird);
    acceptable.peer_ord = number(words->ord);
  }
  return acceptable;
}

Accepted make_accept(const StartupFrame& request, const StartupOptions& options, ConstBytes private_data) {
  Accepted accepted;
  Agreement& agreement = accepted.agreement;
  agreement.ird = options.ird;
  agreement.ord = options.ord;
  std::optional<EnhancedWords> words;
  if (const auto asked = parse_enhanced_words(request)) {
    words = answer_words(*asked, options, agreement);
  } else {
    // Without the words no frame announces an IRD, but Chelsio's RNICs still begin with a Read of no octets.
    agreement.ird = std::max(agreement.ird, kRtrReadSlots);
  }
  accepted.reply = make_reply(request, options, false, words, private_data);
  if (request.rev == 0) accepted.reply.m = true;  // MPA-C.2.3-02, MPA-C.2.4-01; C follows the Request
  agree_on_framing(request, accepted.reply, FrameKind::kReply, agreement);
  return accepted;
}

StartupFrame make_reject(const StartupFrame& request, const StartupOptions& options, ConstBytes private_data) {
  std::optional<EnhancedWords> words;
  if (const auto asked = parse_enhanced_words(request)) {
    Agreement unused;
    words = answer_words(*asked, options, unused);
  }
  return make_reply(request, options, true, words, private_data);
}

std::variant<Agreement, RejectedReply, Unagreeable, BadFrame> evaluate_reply(const StartupFrame& reply,
                                                                             const StartupFrame& request,
                                                                             const StartupOptions& options) {
  const bool rdmac = reply.rev == 0 && options.permissive && request.rev == 1;
  if (violates("MPA-7.1.1-16", (reply.rev == 0 && !rdmac) || reply.rev > request.rev))
    return BadFrame{Error::kStartupFrame, "the MPA Reply has a Rev that we did not offer", StartupFault::kRevision};
  const auto words = parse_enhanced_words(reply);
  if (violates("MPA2-6-11", reply.enhanced() && !words))
    return BadFrame{Error::kStartupFrame, kNoWords, StartupFault::kNoWords};
  if (reply.r) {
    RejectedReply rejected;
    rejected.revision = reply.rev;
    if (words) {
      rejected.peer_ird = number(words->ird);
      rejected.peer_ord = number(words->ord);
    }
    return rejected;
  }
  const auto asked = parse_enhanced_words(request);
  if (violates("MPA2-10-01", asked && !words))
    return BadFrame{Error::kStartupFrame, "an unenhanced MPA Reply (S=0) to an enhanced Request",
                    StartupFault::kNoWords};
  if (violates("MPA2-10-02", words && !asked))
    return BadFrame{Error::kStartupFrame, "an enhanced MPA Reply (S=1) to an unenhanced Request",
                    StartupFault::kNoWords};
  if (violates("MPA-C.2.5-02", rdmac && !is_rdmac(reply)))  // MPA-A-19
    return BadFrame{Error::kStartupFrame, "an MPA startup frame of Rev 0 without M=1 and C=1",
                    StartupFault::kRdmacBits};

  Agreement agreement;
  agree_on_framing(request, reply, FrameKind::kRequest, agreement);
  agreement.ird = options.ird;
  agreement.ord = options.ord;
  if (!words || !asked) {
    agreement.rtr = options.rtr_unasked;
    return agreement;
  }
  auto settled = settle(*words, *asked, options, agreement);
  if (auto* agreed = std::get_if<Agreement>(&settled)) return *agreed;
  return std::get<Unagreeable>(settled);
}

}  // namespace weft::mpa
