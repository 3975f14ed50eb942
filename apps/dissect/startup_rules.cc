#include "apps/dissect/startup_rules.h"

#include <fmt/format.h>

#include <utility>

#include "apps/dissect/effect.h"
#include "apps/dissect/mpa_layer.h"

namespace weft::apps::dissect {

namespace {

using mpa::EnhancedWords;
using mpa::StartupFrame;

constexpr std::string_view kCloses = "the receiver closes TCP without an answer";
constexpr std::string_view kIgnores = "the receiver ignores it";
constexpr std::string_view kTakes = "the initiator may take the number as it stands";

// RFC 8797 section 4: octet 4 is the version, and octet 5 has R and seven reserved bits.
void judge_private_data(ConstBytes octets, Frame& frame) {
  constexpr std::size_t kVersionAt = 4, kFlagsAt = 5;
  constexpr std::uint8_t kVersion = 1, kReserved = 0xfe;
  const auto at = find_rpcrdma_private_data(octets);
  if (!at || octets[*at + kVersionAt] != kVersion || (octets[*at + kFlagsAt] & kReserved) == 0) return;
  frame.find("R1-4.3.2-05", "a reserved bit of the RPC-over-RDMA private data is set", kIgnores);
}

void judge_alone(const StartupFrame& startup, Frame& frame) {
  if (startup.rev > mpa::kEnhancedRevision)
    frame.find("MPA-7.1.1-17", fmt::format("revision {} is not known", startup.rev), closes_tcp(kCloses));
  if (startup.res != 0 || (startup.s && !startup.enhanced()))
    frame.find("MPA-7.1.1-13", "a reserved bit is set", kIgnores);
  if (startup.kind == mpa::FrameKind::kRequest && startup.r)
    frame.find("MPA-7.1.1-11", "R is set in a Request", kIgnores);
  const auto words = mpa::parse_enhanced_words(startup);
  if (words && !words->a && (words->b || words->c || words->d))
    frame.find("MPA2-9.2-12", "an RTR flag is set without A (peer-to-peer)", kIgnores);
  judge_private_data(mpa::ulp_private_data(startup), frame);
}

void judge_words(const EnhancedWords& asked, const EnhancedWords& told, Frame& frame) {
  if (asked.a != told.a)
    frame.find("MPA2-9.2-04", fmt::format("A is {} in the Reply and {} in the Request", int{told.a}, int{asked.a}),
               may_end("the initiator ends the connection: Terminate 2/0/07"));
  if (told.a && !told.b && !told.c && !told.d)
    frame.find("MPA2-9.2-08", "the Reply names no RTR indication",
               may_end("the initiator ends the connection: Terminate 2/0/07"));
  // RFC 6581 section 9.1: what the initiator leaves to its program, the responder leaves, too.
  if (asked.ord == EnhancedWords::kManual && told.ird != EnhancedWords::kManual)
    frame.find("MPA2-9.1-17", fmt::format("IRD {} answers an ORD that is set by hand", told.ird), kTakes);
  if (asked.ird == EnhancedWords::kManual && told.ord != EnhancedWords::kManual)
    frame.find("MPA2-9.1-18", fmt::format("ORD {} answers an IRD that is set by hand", told.ord), kTakes);
  const bool is_manual = asked.ird == EnhancedWords::kManual || told.ord == EnhancedWords::kManual;
  if (!is_manual && told.ord > asked.ird)
    frame.find("MPA2-9.1-09", fmt::format("ORD {} in the Reply is above IRD {} in the Request", told.ord, asked.ird),
               may_end("the initiator ends the connection if it cannot serve so many RDMA Reads: Terminate 2/0/06"));
}

void judge_reply(const StartupFrame& request, const StartupFrame& reply, Frame& frame) {
  if (reply.rev > request.rev)
    frame.find("MPA-7.1.1-16", fmt::format("revision {} answers revision {}", reply.rev, request.rev),
               closes_tcp("the initiator closes TCP"));
  const auto asked = mpa::parse_enhanced_words(request), told = mpa::parse_enhanced_words(reply);
  if (asked && !told)
    frame.find("MPA2-10-01", "a Reply without IRD and ORD answers a Request with them",
               closes_tcp("the initiator closes TCP"));
  if (told && !asked)
    frame.find("MPA2-10-02", "a Reply with IRD and ORD answers a Request without them",
               closes_tcp("the initiator closes TCP"));
  if (asked && told && !reply.r) judge_words(*asked, *told, frame);
}

}  // namespace

void judge_startup_frame(const StartupFrame& startup, const StartupFrame* peer, Frame& frame) {
  judge_alone(startup, frame);
  if (peer == nullptr) return;
  if (peer->kind == startup.kind) {
    const bool is_request = startup.kind == mpa::FrameKind::kRequest;
    return frame.find("MPA-7.1.2-18", fmt::format("both sides send MPA {}", is_request ? "Requests" : "Replies"),
                      closes_tcp(kCloses));
  }
  if (startup.kind == mpa::FrameKind::kReply) judge_reply(*peer, startup, frame);
}

}  // namespace weft::apps::dissect
