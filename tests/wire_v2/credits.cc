#include "tests/wire_v2/credits.h"

#include <algorithm>

namespace weft::wire_v2 {
namespace {

// Counters wrap: a is before b (W2-4.2.1-9).
bool is_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace

bool RpcCredits::call(std::uint32_t requested) {
  ++calls_;
  for (; received_ < answers_.size(); ++received_) {
    if (calls_ - received_ <= std::min(requested, answers_[received_].granted)) return true;
  }
  --received_;
  return false;
}

void RpcCredits::answer(std::uint32_t granted, std::size_t event) {
  answers_.push_back({granted, event});
}

bool MessageCredits::send(bool is_grant) {
  ++sent_;
  const std::uint32_t extra = is_grant ? 1 : 0;
  for (; received_ < limits_.size(); ++received_) {
    if (!is_before(limits_[received_].value + extra, sent_)) return true;
  }
  --received_;
  return false;
}

MessageCredits::Announced MessageCredits::announce(std::uint32_t credit, std::size_t event) {
  constexpr std::uint32_t kMostCredits = 0x7fffffff;  // less than this many (W2-4.2.1-10)
  const bool is_first = limits_.size() == 1;
  Announced announced = Announced::kGood;
  if (is_first && credit - sent_ >= kMostCredits && credit != sent_ - 1) announced = Announced::kTooLarge;
  if (!is_first && is_before(credit, limit())) announced = Announced::kGoesBack;
  if (announced == Announced::kGood) limits_.push_back({credit, event});
  return announced;
}

}  // namespace weft::wire_v2
