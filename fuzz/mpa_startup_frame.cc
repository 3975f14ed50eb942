// Parse, emit, parse again for MPA startup frames, and the judgement of whatever was well formed.
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

void judge(const mpa::StartupFrame& frame) {
  mpa::StartupOptions options;
  options.rtr_offered = {.send = true, .write = true, .read = true};
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
  check(accepted.agreement.ird <= options.ird && accepted.agreement.ord <= options.ord);
  check(accepted.reply.enhanced() == frame.enhanced() && accepted.reply.rev == frame.rev);
  check(mpa::make_reject(frame, options, {}).r);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ConstBytes octets(data, size);
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
    judge(whole->frame);
  }
  return 0;
}
