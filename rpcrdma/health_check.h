#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/requester.h"

namespace weft::rpcrdma {

// HealthCheck watches one connection after another. It outlives its Requester.
class HealthCheck {
 public:
  explicit HealthCheck(const HealthCheckPolicy& policy) : policy_(policy) {}

  // restart: another connection; the check of the last one has ended.
  void restart();
  // on_time sends a check if one is due. Call it after Requester::on_time. True: the peer did not answer.
  bool on_time(Requester& requester, TimePoint now);
  std::optional<TimePoint> next_timeout(const Requester& requester) const;

 private:
  bool has_to_watch(const Requester& requester) const;
  void send(Requester& requester, const CallSpec& spec);

  HealthCheckPolicy policy_;
  bool watching_ = false;
  bool asking_ = false;
  bool unanswered_ = false;
  std::uint64_t num_received_ = 0;
  TimePoint quiet_since_{};
};

}  // namespace weft::rpcrdma
