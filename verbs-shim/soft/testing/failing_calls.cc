#include "verbs-shim/soft/testing/failing_calls.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/sanitizers.h"

namespace weft::verbs::testing {
namespace {

struct Plan {
  std::atomic<int> errno_value{0};
  std::atomic<int> left{0};
};
std::array<Plan, 3> plans;

Plan& plan_of(FailingCall call) {
  return plans[static_cast<std::size_t>(call)];
}

bool fails(FailingCall call) {
  Plan& plan = plan_of(call);
  int left = plan.left.load();
  while (left > 0 && !plan.left.compare_exchange_weak(left, left - 1)) {
  }
  if (left <= 0) return false;
  errno = plan.errno_value.load();
  return true;
}

}  // namespace

FailCalls::FailCalls(FailingCall call, int errno_value, int times) : call_(call), times_(times) {
  plan_of(call).errno_value = errno_value;
  plan_of(call).left = times;
}

FailCalls::~FailCalls() {
  plan_of(call_).left = 0;
}

int FailCalls::num_failed() const {
  return times_ - plan_of(call_).left;
}

}  // namespace weft::verbs::testing

using weft::verbs::testing::FailingCall;
using weft::verbs::testing::fails;

// ThreadSanitizer has to see the calls: it learns from its own functions in their place which threads sockets order.
#ifdef WEFT_UNDER_TSAN
extern "C" int __interceptor_epoll_ctl(int, int, int, epoll_event*);
extern "C" int __interceptor_accept(int, sockaddr*, socklen_t*);
extern "C" int __interceptor_accept4(int, sockaddr*, socklen_t*, int);
extern "C" int __interceptor_socket(int, int, int);
#endif

extern "C" int epoll_ctl(int epfd, int op, int fd, epoll_event* event) noexcept {
  if (op == EPOLL_CTL_ADD && fails(FailingCall::kEpollAdd)) return -1;
#ifdef WEFT_UNDER_TSAN
  return __interceptor_epoll_ctl(epfd, op, fd, event);
#else
  return static_cast<int>(::syscall(SYS_epoll_ctl, epfd, op, fd, event));
#endif
}

extern "C" int accept(int fd, sockaddr* address, socklen_t* len) {
  if (fails(FailingCall::kAccept)) return -1;
#ifdef WEFT_UNDER_TSAN
  return __interceptor_accept(fd, address, len);
#else
  return static_cast<int>(::syscall(SYS_accept4, fd, address, len, 0));
#endif
}

extern "C" int accept4(int fd, sockaddr* address, socklen_t* len, int flags) {
  if (fails(FailingCall::kAccept)) return -1;
#ifdef WEFT_UNDER_TSAN
  return __interceptor_accept4(fd, address, len, flags);
#else
  return static_cast<int>(::syscall(SYS_accept4, fd, address, len, flags));
#endif
}

extern "C" int socket(int domain, int type, int protocol) noexcept {
  if (fails(FailingCall::kSocket)) return -1;
#ifdef WEFT_UNDER_TSAN
  return __interceptor_socket(domain, type, protocol);
#else
  return static_cast<int>(::syscall(SYS_socket, domain, type, protocol));
#endif
}
