#include "apps/nfs/silence.h"

#include <fmt/format.h>

namespace weft::nfs {

SilenceWatch::News SilenceWatch::look(bool waiting, std::uint64_t num_answers, TimePoint now) {
  const bool answered = num_answers != num_answers_;
  num_answers_ = num_answers;
  if (!waiting || answered || !waiting_since_) waiting_since_ = waiting ? std::optional(now) : std::nullopt;
  if (told_ && (answered || !waiting)) {
    told_ = false;
    return answered ? News::kBack : News::kNone;
  }
  if (told_ || !waiting || now - *waiting_since_ < after_) return News::kNone;
  told_ = true;
  return News::kSilent;
}

std::optional<TimePoint> SilenceWatch::next() const {
  if (told_ || !waiting_since_) return std::nullopt;
  return *waiting_since_ + after_;
}

std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", double(time.count()) / 1000);
}

std::string not_responding(const std::string& server, std::chrono::milliseconds timeout,
                           const rpcrdma::ReplyCounts& before, const rpcrdma::ReplyCounts& now) {
  std::string text = "server " + server + " is not responding";
  if (const std::uint64_t num = now.discarded - before.discarded; num > 0) {
    text += fmt::format(" ({} {} had to be discarded, the last because: {})", num, num == 1 ? "message" : "messages",
                        now.last_discard);
  }
  return text + ", still trying (for " + seconds_text(timeout) + " in all: --timeout)";
}

std::string responding_again(const std::string& server) {
  return "server " + server + " OK";
}

}  // namespace weft::nfs
