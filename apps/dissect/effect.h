#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "rdmap/terminate.h"

namespace weft::apps::dissect {

// Ending: what a receiver does to the connection.
struct Ending {
  enum class Kind : std::uint8_t {
    kNone,       // nothing
    kMayEnd,     // it ends the connection, or may
    kClosesTcp,  // it closes TCP without a Terminate
    kTerminate,  // it answers with a Terminate
  };
  Kind kind = Kind::kNone;
  rdmap::Terminate terminate = {};  // of kTerminate

  static Ending by(const rdmap::Terminate& terminate) { return {Kind::kTerminate, terminate}; }
  bool is_fatal() const { return kind != Kind::kNone; }
  friend bool operator==(const Ending&, const Ending&) = default;
};

// Effect: what a receiver does with a frame that breaks a rule. The dissector prints the text and decides by the
// ending.
struct Effect {
  Effect() = default;
  // A text alone: the connection goes on.
  template <std::convertible_to<std::string_view> Text>
  Effect(const Text& words) : text(std::string_view(words)) {}
  Effect(std::string_view words, Ending end) : text(words), ending(end) {}

  std::string text;
  Ending ending;
};

inline Effect may_end(std::string_view text) {
  return {text, {Ending::Kind::kMayEnd}};
}

inline Effect closes_tcp(std::string_view text) {
  return {text, {Ending::Kind::kClosesTcp}};
}

inline Effect terminated(const rdmap::Terminate& terminate) {
  return {"the receiver ends the connection: Terminate " + rdmap::describe(terminate), Ending::by(terminate)};
}

}  // namespace weft::apps::dissect
