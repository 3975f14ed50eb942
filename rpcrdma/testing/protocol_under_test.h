#pragma once

#include <cstdlib>
#include <string>
#include <utility>

#include "rpcrdma/client.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/server.h"

// The protocol of a whole test program: with WEFT_RPCRDMA=NAME in the environment the connections have that one. So the
// same tests run once for each version.
namespace weft::rpcrdma::testing {

// WEFT_RPCRDMA, or version 1.
inline Protocol protocol_under_test() {
  const char* name = std::getenv("WEFT_RPCRDMA");
  return name != nullptr ? parse_protocol(name).value() : Protocol::k1;
}

// Whether a message may come in several messages, and credits count messages.
inline bool has_continuation() {
  return profile_of(protocol_under_test()).framing != nullptr;
}

// For RecordProperty("proves", ...): `rows`, and in a run of version 2 also the rows `of_version2`.
inline std::string rows(const std::string& rows, const std::string& of_version2) {
  return protocol_under_test() == Protocol::k1 ? rows : rows + " " + of_version2;
}

// `config`, with the protocol of this run unless it names another one.
inline ServerConfig with_protocol(ServerConfig config) {
  if (config.protocols == ServerConfig{}.protocols) config.protocols = {protocol_under_test()};
  return config;
}
inline ClientConfig with_protocol(ClientConfig config) {
  if (config.protocols == ClientConfig{}.protocols) config.protocols = {protocol_under_test()};
  return config;
}

}  // namespace weft::rpcrdma::testing
