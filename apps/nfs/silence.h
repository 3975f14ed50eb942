#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "rpcrdma/client.h"
#include "verbs-shim/api/types.h"

namespace weft::nfs {

// SilenceWatch says when a server owes an answer for so long that its user should hear of it, and when the server is
// back. A plain value, with time as a parameter.
class SilenceWatch {
 public:
  // after: the length of a silence that the user does not hear of.
  explicit SilenceWatch(std::chrono::milliseconds after) : after_(after) {}

  enum class News : std::uint8_t { kNone, kSilent, kBack };

  // look: waiting says whether an answer is owed, num_answers counts the answers so far.
  News look(bool waiting, std::uint64_t num_answers, TimePoint now);
  // When to look again at the latest if nothing else happens.
  std::optional<TimePoint> next() const;
  // Whether the last news was kSilent.
  bool told() const { return told_; }

 private:
  std::chrono::milliseconds after_;
  std::uint64_t num_answers_ = 0;
  std::optional<TimePoint> waiting_since_;
  bool told_ = false;
};

// not_responding is the line that tells of a silent server. timeout is the end of the wait; `before` is the Reply
// counts from the beginning of the silence.
std::string not_responding(const std::string& server, std::chrono::milliseconds timeout,
                           const rpcrdma::ReplyCounts& before, const rpcrdma::ReplyCounts& now);
std::string responding_again(const std::string& server);

// seconds_text: "120 s", "0.5 s".
std::string seconds_text(std::chrono::milliseconds time);

}  // namespace weft::nfs
