// Parse, emit, parse again for MPA startup frames. Each well-formed frame is judged by the options in the two octets
// behind it, where there are any.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "mpa/startup.h"
#include "mpa/startup_frame.h"

namespace {

using namespace weft;

void check(bool holds) {
  if (!holds) std::abort();
}

mpa::StartupOptions options_of(weft::ConstBytes surplus) {
  mpa::StartupOptions options;
  options.rtr_offered = {.send = true, .write = true, .read = true};
  if (surplus.size() < 2) return options;
  const std::uint8_t bits = surplus[0];
  options.revision = (bits & 1) != 0 ? 1 : 2;
  options.permissive = (bits & 2) != 0;
  options.crc = (bits & 4) != 0;
  options.markers = (bits & 8) != 0;
  options.rtr_offered = {(bits & 16) != 0, (bits & 32) != 0, (bits & 64) != 0};
  options.rtr_unasked = (bits & 128) != 0 ? mpa::Rtr::kRead : mpa::Rtr::kNone;
  const std::uint8_t more = surplus[1];
  options.ird = (more & 1) != 0 ? mpa::EnhancedWords::kManual : more >> 4;
  options.ord = (more & 2) != 0 ? mpa::EnhancedWords::kManual : more >> 4;
  // A responder understands at least one.
  options.rtr_understood = {(more & 4) != 0, (more & 8) != 0 || (more & 4) == 0, (bits & 64) != 0};
  return options;
}

// The Reads that a responder serves beyond its own bound: one where the connection may begin with a Read.
std::uint16_t slots_for_rtr(const mpa::StartupFrame& reply) {
  const auto words = mpa::parse_enhanced_words(reply);
  return !words || words->d ? 1 : 0;
}

void judge(const mpa::StartupFrame& frame, const mpa::StartupOptions& options) {
  if (frame.kind == mpa::FrameKind::kReply) {
    const auto request = mpa::make_request(options, {});
    const auto judged = mpa::evaluate_reply(frame, request, options);
    if (const auto* agreed = std::get_if<mpa::Agreement>(&judged)) {
      check(agreed->ird <= options.ird && agreed->ord <= options.ord);
      check(!agreed->peer_ord || *agreed->peer_ord <= agreed->ird);
    }
    return;
  }
  if (!std::holds_alternative<mpa::Acceptable>(mpa::evaluate_request(frame, options))) return;
  const auto accepted = mpa::make_accept(frame, options, {});
  check(accepted.agreement.ird <= std::max(options.ird, slots_for_rtr(accepted.reply)));
  check(accepted.agreement.ord <= options.ord);
  check(accepted.reply.enhanced() == frame.enhanced() && accepted.reply.rev == frame.rev);
  check(mpa::make_reject(frame, options, {}).r);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::ConstBytes octets(data, size);
  for (const auto kind : {mpa::FrameKind::kRequest, mpa::FrameKind::kReply}) {
    const auto parsed = mpa::parse_startup_frame(octets, kind);
    if (const auto* more = std::get_if<mpa::NeedMore>(&parsed)) {
      check(more->len != 0 && size + more->len <= mpa::kStartupHeaderLen + mpa::kMaxPrivateDataLen);
      continue;
    }
    const auto* whole = std::get_if<mpa::ParsedFrame>(&parsed);
    if (whole == nullptr) continue;
    std::vector<std::uint8_t> emitted;
    mpa::emit_startup_frame(whole->frame, emitted);
    check(emitted == std::vector<std::uint8_t>(data, data + whole->len));
    const auto again = mpa::parse_startup_frame(emitted, kind);
    check(std::get<mpa::ParsedFrame>(again).frame == whole->frame);
    judge(whole->frame, options_of(octets.subspan(whole->len)));
  }
  return 0;
}
