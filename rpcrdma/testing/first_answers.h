#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rpcrdma/profile.h"

// The answers of servers to the first message of a client.
namespace weft::rpcrdma::testing {

// first_answer: of an engine that speaks these profiles and serves no program of the message. A Reply has the credit
// word `credit`. Empty: the engine discards the message.
std::optional<std::vector<std::uint8_t>> first_answer(const Profiles& spoken, ConstBytes message,
                                                      std::uint32_t credit = 8);

}  // namespace weft::rpcrdma::testing
