#pragma once

#include <cstdint>
#include <string_view>

#include "rpcrdma/rpc_message.h"

namespace weft::apps::dissect {

// GssUse: how RPCSEC_GSS (RFC 2203 section 5) changes the arguments and results of a Call.
enum class GssUse : std::uint8_t {
  kNone,  // they stand there as the procedure has them
  kInit,
  kContinueInit,
  kDestroy,
  kIntegrity,
  kPrivacy,
  kUnknown,
};

GssUse gss_use(const rpcrdma::AuthView& credential);

// is_gss_control: a message of RPCSEC_GSS itself, and not of the procedure.
constexpr bool is_gss_control(GssUse use) {
  return use == GssUse::kInit || use == GssUse::kContinueInit || use == GssUse::kDestroy;
}
// is_gss_wrapped: the arguments and results are inside other octets.
constexpr bool is_gss_wrapped(GssUse use) {
  return use == GssUse::kIntegrity || use == GssUse::kPrivacy;
}

// gss_words: "RPCSEC_GSS privacy". Empty for kNone.
std::string_view gss_words(GssUse use);

}  // namespace weft::apps::dissect
