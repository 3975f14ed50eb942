#pragma once

#include <cstdint>

// Numbers of buffers and of Calls on one connection. Types of their own, because a Call is not the Receive that it came
// in, nor is an answer the Call.
namespace weft::rpcrdma {

enum class ReceiveSlot : std::uint32_t {};  // a Receive buffer of an Endpoint
enum class SendSlot : std::uint32_t {};     // a Send buffer of an Endpoint
enum class CallSlot : std::uint32_t {};     // a Call that a Responder works on

constexpr std::uint32_t index_of(ReceiveSlot slot) {
  return static_cast<std::uint32_t>(slot);
}
constexpr std::uint32_t index_of(SendSlot slot) {
  return static_cast<std::uint32_t>(slot);
}
constexpr std::uint32_t index_of(CallSlot slot) {
  return static_cast<std::uint32_t>(slot);
}

}  // namespace weft::rpcrdma
