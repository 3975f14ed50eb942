#include "apps/common/rpc_config.h"

#include "apps/common/setup.h"

namespace weft::apps {
namespace {

template <typename Config>
Config common_config(const GlobalOptions& options, std::uint32_t credits) {
  Config config;
  config.protocols = options.protocols;
  config.literal_credits = options.literal_credits;
  config.inline_threshold = options.inline_threshold;
  config.credits = options.credits.value_or(credits);
  config.log = program_log();
  return config;
}

}  // namespace

rpcrdma::ClientConfig client_config(const GlobalOptions& options, std::uint32_t credits) {
  auto config = common_config<rpcrdma::ClientConfig>(options, credits);
  config.ird = options.ird;
  config.max_discards = 0;  // the user hears of a broken server at once, not when a Call has waited in vain
  config.remote_invalidation = options.remote_invalidation == RemoteInvalidation::kOn;
  config.chunks.max_continued_call = options.parts;
  config.chunks.weighs_round_trip = true;
  return config;
}

rpcrdma::ServerConfig server_config(const GlobalOptions& options, std::uint32_t credits) {
  auto config = common_config<rpcrdma::ServerConfig>(options, credits);
  config.ord = options.ord;
  config.remote_invalidation = options.remote_invalidation != RemoteInvalidation::kOff;
  return config;
}

}  // namespace weft::apps
