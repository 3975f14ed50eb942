#include "mpa/startup_frame.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "mpa/wire/cursor.h"
#include "requirements/violates.h"

namespace weft::mpa {
namespace {

constexpr std::size_t kKeyLen = 16;
constexpr std::uint8_t kFlagM = 0x80;
constexpr std::uint8_t kFlagC = 0x40;
constexpr std::uint8_t kFlagR = 0x20;
constexpr std::uint8_t kFlagS = 0x10;
constexpr std::uint8_t kResMask = 0x0f;

using Key = std::array<std::uint8_t, kKeyLen>;
constexpr Key kRequestKey = {'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e'};
constexpr Key kReplyKey = {'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e'};

const Key& key_of(FrameKind kind) {
  return kind == FrameKind::kRequest ? kRequestKey : kReplyKey;
}

bool begins_like(ConstBytes octets, const Key& key) {
  const std::size_t len = std::min(octets.size(), key.size());
  return std::equal(octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(len), key.begin());
}

// The Keys differ in one octet on purpose: so two initiators notice each other (MPA-7.1.2-18).
BadFrame wrong_key(ConstBytes octets, FrameKind expected) {
  const auto bad = [](std::string_view reason, StartupFault fault) {
    return BadFrame{Error::kStartupFrame, reason, fault};
  };
  if (expected == FrameKind::kReply && begins_like(octets, kRequestKey))
    return bad("an MPA Request Frame where a Reply Frame is due: both ends are initiators",
               StartupFault::kBothInitiators);
  if (expected == FrameKind::kRequest && begins_like(octets, kReplyKey))
    return bad("an MPA Reply Frame where a Request Frame is due", StartupFault::kBothResponders);
  return bad(
      expected == FrameKind::kRequest ? "not an MPA Request Frame (wrong Key)" : "not an MPA Reply Frame (wrong Key)",
      StartupFault::kForeign);
}

constexpr std::uint16_t kWordMask = 0x3fff;
constexpr std::uint16_t kUpperFlag = 0x8000;
constexpr std::uint16_t kLowerFlag = 0x4000;

}  // namespace

std::variant<NeedMore, ParsedFrame, BadFrame> parse_startup_frame(ConstBytes octets, FrameKind expected) {
  // MPA-7.1.3-02: octets that cannot become a frame are refused without waiting for the rest.
  if (violates("MPA-7.1.2-15", !begins_like(octets, key_of(expected)))) return wrong_key(octets, expected);
  if (octets.size() < kStartupHeaderLen) return NeedMore{kStartupHeaderLen - octets.size()};

  Reader reader(octets);
  std::uint8_t flags = 0;
  std::uint16_t pd_length = 0;
  ParsedFrame parsed;
  StartupFrame& frame = parsed.frame;
  const bool whole_header = reader.skip(kKeyLen) && reader.u8(flags) && reader.u8(frame.rev) && reader.u16(pd_length);
  assert(whole_header);
  (void)whole_header;
  frame.kind = expected;
  frame.m = (flags & kFlagM) != 0;
  frame.c = (flags & kFlagC) != 0;
  frame.r = (flags & kFlagR) != 0;
  frame.s = (flags & kFlagS) != 0;
  frame.res = flags & kResMask;
  if (violates("MPA-7.1.1-22", pd_length > kMaxPrivateDataLen))
    return BadFrame{Error::kStartupFrame, "PD_Length of an MPA startup frame is above 512",
                    StartupFault::kPrivateDataLen};
  if (violates("MPA2-6-11", frame.enhanced() && pd_length < kEnhancedWordsLen))
    return BadFrame{Error::kStartupFrame, "an enhanced MPA startup frame (S=1) without IRD and ORD",
                    StartupFault::kNoWords};
  ConstBytes private_data;
  if (!reader.bytes(pd_length, private_data)) return NeedMore{pd_length - reader.rest().size()};
  frame.private_data.assign(private_data.begin(), private_data.end());
  parsed.len = kStartupHeaderLen + pd_length;
  return parsed;
}

void emit_startup_frame(const StartupFrame& frame, std::vector<std::uint8_t>& out) {
  assert(frame.private_data.size() <= kMaxPrivateDataLen);
  const std::size_t begin = out.size();
  out.resize(begin + kStartupHeaderLen + frame.private_data.size());
  Writer writer(MutBytes(out).subspan(begin));
  const std::uint8_t flags =
      static_cast<std::uint8_t>((frame.m ? kFlagM : 0) | (frame.c ? kFlagC : 0) | (frame.r ? kFlagR : 0) |
                                (frame.s ? kFlagS : 0) | (frame.res & kResMask));
  const bool fits = writer.bytes(key_of(frame.kind)) && writer.u8(flags) && writer.u8(frame.rev) &&
                    writer.u16(static_cast<std::uint16_t>(frame.private_data.size())) &&
                    writer.bytes(frame.private_data);
  assert(fits);
  (void)fits;
}

std::optional<EnhancedWords> parse_enhanced_words(const StartupFrame& frame) {
  if (!frame.enhanced()) return std::nullopt;
  Reader reader(frame.private_data);
  std::uint16_t word0 = 0;
  std::uint16_t word1 = 0;
  if (!reader.u16(word0) || !reader.u16(word1)) return std::nullopt;
  EnhancedWords words;
  words.a = (word0 & kUpperFlag) != 0;
  words.b = (word0 & kLowerFlag) != 0;
  words.ird = word0 & kWordMask;
  words.c = (word1 & kUpperFlag) != 0;
  words.d = (word1 & kLowerFlag) != 0;
  words.ord = word1 & kWordMask;
  return words;
}

void emit_enhanced_words(const EnhancedWords& words, std::vector<std::uint8_t>& out) {
  const auto word0 =
      static_cast<std::uint16_t>((words.a ? kUpperFlag : 0) | (words.b ? kLowerFlag : 0) | (words.ird & kWordMask));
  const auto word1 =
      static_cast<std::uint16_t>((words.c ? kUpperFlag : 0) | (words.d ? kLowerFlag : 0) | (words.ord & kWordMask));
  const std::size_t begin = out.size();
  out.resize(begin + kEnhancedWordsLen);
  Writer writer(MutBytes(out).subspan(begin));
  const bool fits = writer.u16(word0) && writer.u16(word1);
  assert(fits);
  (void)fits;
}

ConstBytes ulp_private_data(const StartupFrame& frame) {
  const ConstBytes all(frame.private_data);
  if (!frame.enhanced()) return all;
  return all.subspan(std::min(all.size(), kEnhancedWordsLen));
}

}  // namespace weft::mpa
