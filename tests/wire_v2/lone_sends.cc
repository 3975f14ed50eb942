#include "tests/wire_v2/lone_sends.h"

#include <variant>

#include "tests/wire_v2/decoder.h"
#include "tests/wire_v2/glance.h"

namespace weft::wire_v2 {

std::optional<std::string> LoneSends::judge(std::size_t end, const Bytes& octets) {
  if (version_of(octets) == 1 && !is_mismatch(octets)) return {};
  ++num_judged_;
  if (is_probe(octets)) draft_of_.erase(end);
  if (const auto draft = draft_of(octets)) draft_of_.try_emplace(end, *draft);
  const auto shown = draft_of_.find(end);
  const Profile profile = shown != draft_of_.end()              ? shown->second
                          : is_allowed(octets, Profile::kCel05) ? Profile::kCel05
                                                                : Profile::kWg07;
  const auto decoded = decode(octets, profile);
  const auto* fault = std::get_if<Fault>(&decoded);
  if (fault == nullptr) return {};
  return fault->rule + ": " + fault->text + "\n" + hex(octets);
}

}  // namespace weft::wire_v2
