#include "rpcrdma/connection_setup.h"

#include <netdb.h>

#include <array>
#include <cerrno>
#include <span>

namespace weft::rpcrdma {

std::vector<std::uint8_t> own_private_data(const verbs::Caps& caps, std::size_t inline_threshold,
                                           bool remote_invalidate) {
  if (caps.max_private_data < kPrivateDataLen) return {};
  const auto octets = emit_private_data({remote_invalidate, inline_threshold, inline_threshold});
  return {octets.begin(), octets.end()};
}

verbs::Status check_sizes(const verbs::Caps& caps, std::size_t inline_threshold, std::uint32_t credits,
                          std::uint32_t other_receives) {
  if (inline_threshold < kDefaultInline || inline_threshold > kMaxInline || inline_threshold % 1024 != 0) {
    return verbs::Error{EINVAL, "the inline threshold must be a multiple of 1024 from 1024 to 262144"};
  }
  if (credits == 0 || credits > kMaxCredits) {
    return verbs::Error{EINVAL, "credits must be from 1 to " + std::to_string(kMaxCredits)};
  }
  if (other_receives > caps.max_qp_wr || credits > caps.max_qp_wr - other_receives) {
    return verbs::Error{EINVAL, std::to_string(credits) + " credits need " + std::to_string(other_receives) +
                                    " receives besides, and a queue of this device holds " +
                                    std::to_string(caps.max_qp_wr) + ": ask for fewer credits"};
  }
  return {};
}

}  // namespace weft::rpcrdma
