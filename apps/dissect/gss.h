#pragma once

#include <string_view>

#include "rpcrdma/rpc_message.h"

namespace weft::apps::dissect {

// gss_words says what RPCSEC_GSS (RFC 2203 section 5) does to the arguments and results of a Call with this credential:
// "RPCSEC_GSS privacy". Empty: they stand there as the procedure has them.
std::string_view gss_words(const rpcrdma::AuthView& credential);

}  // namespace weft::apps::dissect
