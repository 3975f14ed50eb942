#include "rpcrdma/profiles.h"

#include <array>

#include "rpcrdma/v1/profile.h"
#include "rpcrdma/v2_cel05/profile.h"
#include "rpcrdma/v2_wg07/profile.h"

namespace weft::rpcrdma {

namespace {

// Best first.
constexpr std::array kAll = {Protocol::k2Wg07, Protocol::k2Cel05, Protocol::k1};

}  // namespace

const Profile& profile_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::k1: return v1::kProfile;
    case Protocol::k2Cel05: return v2_cel05::kProfile;
    case Protocol::k2Wg07: return v2_wg07::kProfile;
  }
  return v1::kProfile;
}

const Profile& profile_1() {
  return v1::kProfile;
}

Profiles profiles_of(std::span<const Protocol> protocols) {
  Profiles profiles;
  for (const Protocol protocol : protocols) profiles.push_back(&profile_of(protocol));
  return profiles;
}

std::string_view protocol_str(Protocol protocol) {
  return profile_of(protocol).name;
}

std::optional<Protocol> parse_protocol(std::string_view name) {
  for (const Protocol protocol : kAll) {
    if (protocol_str(protocol) == name) return protocol;
  }
  return {};
}

std::vector<Protocol> all_protocols() {
  return {kAll.begin(), kAll.end()};
}

}  // namespace weft::rpcrdma
