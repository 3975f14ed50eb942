#pragma once

#include <cstdint>

// System calls that fail when a test says so. The test program's own definitions of the functions stand before the C
// library's (failing_calls.cc). Unless told otherwise they pass the call on.
namespace weft::verbs::testing {

enum class FailingCall : std::uint8_t { kEpollAdd, kAccept, kSocket };

// FailCalls makes the next `times` calls fail with this errno, as long as it lives. One of a kind at a time.
class FailCalls {
 public:
  FailCalls(FailingCall call, int errno_value, int times);
  ~FailCalls();
  FailCalls(const FailCalls&) = delete;
  FailCalls& operator=(const FailCalls&) = delete;
  // How many of the calls have failed.
  int num_failed() const;

 private:
  const FailingCall call_;
  const int times_;
};

}  // namespace weft::verbs::testing
