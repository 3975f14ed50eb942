#include "tests/wire_v2/decoder.h"

#include <numeric>

#include "tests/wire_v2/judge.h"
#include "tests/wire_v2/parse.h"
#include "tests/wire_v2/rpc.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

constexpr std::size_t kPrefix = 16, kTypeAt = 12;  // octets

std::uint32_t type_of(Octets octets) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) word = word << 8 | octets[kTypeAt + i];
  return word;
}

}  // namespace

std::uint64_t length_of(const Chunk& chunk) {
  return std::accumulate(chunk.begin(), chunk.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Segment& segment) { return sum + segment.length; });
}

std::uint64_t length_of(const ReadList& reads) {
  return std::accumulate(reads.begin(), reads.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const ReadSegment& read) { return sum + read.target.length; });
}

std::variant<Message, Fault> read(Octets octets, Profile profile) {
  const auto fault = [&](const Rules& rules, const char* text) { return Fault{rules.in(profile), text}; };
  if (octets.size() < kPrefix) return fault({"R2-7.2.4-28", "W2-7-1"}, "the message ends inside its first 16 octets");
  if (header_type(profile, type_of(octets)) == nullptr) {
    return fault({"R2-7.2.4-4", "W2-6.1-4"}, "the header type is not known");
  }
  auto parsed = profile == Profile::kCel05 ? parse_cel05(octets) : parse_wg07(octets);
  if (auto* message = std::get_if<Message>(&parsed)) {
    const auto payload = octets.subspan(message->header_len);
    message->payload.assign(payload.begin(), payload.end());
  }
  return parsed;
}

std::variant<Message, Fault> decode(Octets octets, Profile profile) {
  auto found = read(octets, profile);
  if (const auto* message = std::get_if<Message>(&found)) {
    if (auto fault = judge(*message)) return *std::move(fault);
  }
  return found;
}

}  // namespace weft::wire_v2
