#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/testing/fake_verbs.h"
#include "rpcrdma/testing/synthetic.h"
#include "rpcrdma/v1/header.h"

// Engines on queue pairs of the fake verbs, and a program for them to call.
namespace weft::rpcrdma::testing {

inline constexpr std::uint32_t kTestProgram = 100003;
inline constexpr std::uint32_t kTestVersion = 3;

// Procedures of the test program; numbers and argument shapes of NFSv3, so that the vectors are Calls of it.
inline constexpr std::uint32_t kNull = 0;
inline constexpr std::uint32_t kRead = 6;
inline constexpr std::uint32_t kWrite = 7;
inline constexpr std::uint32_t kReaddir = 16;
inline constexpr std::uint32_t kSwap = 30;  // WRITE's arguments, READ's results

// Its binding: WRITE's data may be reduced, and READ's result, which stands behind one word. The other is the binding
// of a program with nothing to reduce (MOUNT's number and version).
const Binding& test_binding();
const Binding& plain_binding();

// The XDR arguments of a WRITE of `len` octets without its data, and where these belong.
Octets write_args(std::size_t len);
std::size_t write_position();
Octets pattern(std::size_t len, std::uint8_t seed = 1);

// The time of the fake clock.
inline TimePoint at(int ms) {
  return TimePoint{} + std::chrono::seconds(1000) + std::chrono::milliseconds(ms);
}

// The octets of a view, to be compared.
inline Octets copy_of(ConstBytes octets) {
  return {octets.begin(), octets.end()};
}

// TestService keeps each Call. `answer`, where it is set, answers at once.
class TestService : public Service {
 public:
  void on_call(ServedCall call) override;
  void on_end(const ConnectionEnd& end) override { ends.push_back(end.why); }

  std::vector<ServedCall> calls;
  std::vector<std::string> ends;  // of connections: why
  std::vector<Octets> args;       // of these, copied
  std::function<void(ServedCall&)> answer;
};

// FakeEnd is one end of a fake connection, without its engines. The engines make the Endpoint.
struct FakeEnd {
  explicit FakeEnd(FakeMemory& memory) : pd(memory), qp(memory, cq) {}
  // Hands up to `max` completions to the engines, and returns their number.
  std::size_t pump(std::size_t max = SIZE_MAX);
  // The Endpoint, and the Link over it. A server's end may have several profiles.
  void make_endpoint(const Endpoint::Config& shape, Link::End which, const Profiles& profiles = {&profile_1()});

  FakePd pd;
  FakeCq cq;
  FakeQp qp;
  std::unique_ptr<Endpoint> endpoint;
  std::optional<Link> link;
};

// ResponderEnd: a Responder on one end.
struct ResponderEnd : FakeEnd {
  struct Options {
    std::uint32_t credits = 32;
    std::uint32_t min_credits = 0;  // 0: as many
    std::size_t inline_threshold = 4096;
    std::size_t reply_threshold = 4096;
    std::uint32_t ord = 16;
    std::uint32_t max_send_wr = 64;
    std::size_t budget = 64 << 20;
    std::size_t max_item = 1 << 20;
    std::size_t max_held = 64 << 20;
    std::size_t finishing = 0;  // octets for Calls that have begun
    std::size_t max_segments = 128;
    std::size_t max_read_chunks = 16;
    std::size_t max_write_chunks = 16;
    std::size_t max_items = 256;
    std::uint32_t max_sge = 4;
    bool invalidates = false;
    std::vector<Protocol> protocols = {Protocol::k1};
    bool can_invalidate = false;
    std::vector<const Binding*> bindings = {};            // of further programs, beside the default ones
    DuplicateRequestCache* duplicate_requests = nullptr;  // then all programs keep Replies
    MessagePool* sends = nullptr;                         // null: the Endpoint's own
    EventLog* log = nullptr;
  };

  ResponderEnd(FakeMemory& memory, const Options& options);
  ~ResponderEnd();

  TestService service;
  std::vector<ServedProgram> programs;
  BufferPool pool;
  Budget budget;
  std::unique_ptr<Responder> responder;
};

// RequesterEnd: a Requester on the other.
struct RequesterEnd : FakeEnd {
  struct Options {
    std::uint32_t credits = 32;
    std::size_t inline_threshold = 4096;
    std::size_t call_threshold = 4096;
    std::size_t reply_threshold = 4096;
    std::chrono::milliseconds call_timeout{1000};
    std::uint32_t first_xid = 0x11110000;
    bool start = true;
    bool reserve_credit = false;
    ChunkUse chunks = {};
    bool windows = false;
    std::uint32_t max_send_wr = 1024;  // of the device, for windows
    bool retransmits = false;
    std::chrono::milliseconds retransmit_after{0};
    bool short_only = false;
    Protocol protocol = Protocol::k1;
    EventLog* log = nullptr;
  };

  RequesterEnd(FakeMemory& memory, const Options& options);
  ~RequesterEnd();

  std::unique_ptr<Requester> requester;
};

// A Call of this binding's program.
CallSpec call_of(const Binding& binding, std::uint32_t procedure = 0, ConstBytes args = {});

// An RPC Reply message of the given kind with these results, as octets of a Payload stream.
Octets rpc_reply(std::uint32_t xid, const Octets& results = {}, AcceptStat stat = AcceptStat::kSuccess);
// A version 1 message: header, then payload.
Octets message(const v1::Header& header, const Octets& payload);
v1::Header parse(const Octets& message);
// The plain answer to a Call as it was sent: its chunks are left unused.
Octets plain_reply(const Octets& call, std::uint32_t credits, const Octets& results = {});
// The handles of all its segments.
std::vector<std::uint32_t> handles_of(const v1::Header& header);
// The octets behind the header.
Octets payload_of(const Octets& message);

}  // namespace weft::rpcrdma::testing
