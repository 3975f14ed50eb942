// A Link of a client or of a server against an arbitrary peer, over fake verbs: credits of messages, parts of RPC
// messages, transport properties, and the engines on top, of one direction or of both. The input is two octets of
// settings, then operations.
#include <memory>
#include <optional>
#include <vector>

#include "base/sanitizers.h"
#include "fuzz/op_stream.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/reverse.h"
#include "rpcrdma/testing/fake_verbs.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"

#ifdef WEFT_UNDER_ASAN
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // of ASan
#endif

namespace {

using namespace weft;
using namespace weft::rpcrdma;
using fuzz::Input;
using fuzz::must;
using Octets = std::vector<std::uint8_t>;

// Octets of the heap, all together; 0 where ASan does not count them.
std::size_t live_octets() {
#ifdef WEFT_UNDER_ASAN
  return __sanitizer_get_current_allocated_bytes();
#else
  return 0;
#endif
}

constexpr std::uint32_t kProgram = 0x20000099;
constexpr std::uint32_t kCredits = 8;
constexpr std::uint32_t kReverseCredits = 4;
constexpr std::size_t kLen = 4096;
constexpr std::uint32_t kFirstXid = 0x70;
constexpr std::size_t kGuaranteed = 64 << 10;
constexpr std::size_t kMaxHeld = 4 << 20;
// The memory that a connection may take beyond its budget: short Replies, the messages of its Sends, objects; for a
// client, which has no budget, its Calls and one Reply in parts, too.
constexpr std::size_t kServersCeiling = 1 << 20;
constexpr std::size_t kClientsCeiling = 5 << 20;
constexpr Binding kBinding{.program = kProgram, .version = 1};

struct HoldingService : Service {
  void on_call(ServedCall call) override { calls.push_back(std::move(call)); }
  std::vector<ServedCall> calls;
};

Octets rpc_call(std::uint32_t xid, std::size_t len) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_call(out, {xid, kProgram, 1, 0, {}, {}});
  octets.resize(octets.size() + len);
  return octets;
}

Octets rpc_reply(std::uint32_t xid, std::size_t len) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_reply(out, {.xid = xid, .verf = {}});
  octets.resize(octets.size() + len);
  return octets;
}

template <typename Header, typename Body>
Octets message_of(std::uint32_t xid, std::uint32_t credit, Body body, const Octets& payload) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, Header{.xid = xid, .credit = credit, .body = std::move(body)});
  out.raw(payload);
  return octets;
}

class Machine {
 public:
  explicit Machine(Input input)
      : input_(input),
        settings_(input_.u8()),
        limits_(input_.u8()),
        qp_(memory_, cq_),
        pool_(pd_, 1 << 20, 8 << 20),
        budget_({.all = (limits_ & 1) != 0 ? std::size_t{1536} << 10 : std::size_t{64} << 20,
                 .connection = kMaxHeld,
                 .guaranteed = kGuaranteed}) {
    Endpoint::Config shape;
    shape.serial = 7;
    shape.num_receives = shape.num_sends = kCredits + kExtraReceives;
    if (has_reverse() && is_client()) ReverseResponder::widen(shape, kReverseCredits);
    if (has_reverse() && !is_client()) ReverseRequester::widen(shape, kReverseCredits);
    num_receives_ = shape.num_receives;
    shape.receive_len = kLen;
    shape.send_len = kLen + Responder::kSendExtra;
    endpoint_ = std::move(*Endpoint::create(pd_, shape));
    link_.emplace(*endpoint_, profiles(), is_client() ? Link::End::kClient : Link::End::kServer, [this] { start(); });
    link_->set_now(now_);
    if (is_client()) {
      open_client();
    } else {
      open_server();
    }
    must(endpoint_->attach(qp_).ok());
    if (link_->is_decided()) start();
    qp_.hold_completions = (limits_ & 2) != 0;
  }
  ~Machine() {
    qp_.forget();
    service_.calls.clear();
    reverse_.reset();
    requester_.reset();
    responder_.reset();
    link_.reset();
    endpoint_->detach();
    must(budget_.used() == 0 && budget_.held() == 0);
  }

  void run() {
    const std::size_t at_first = live_octets();
    for (int i = 0; i < 1000 && !input_.empty(); ++i) {
      operation();
      settle();
      must(live_octets() <= at_first + ceiling());
      must(budget_.used() <= budget_.bounds().all && budget_.held() <= budget_.used() + kGuaranteed);
    }
    const bool is_called = responder_ || (reverse_ && is_wg07());
    if (is_called && !endpoint_->failure() && !qp_.broken()) check_alive();
  }

 private:
  bool is_client() const { return (settings_ & 1) != 0; }
  bool is_wg07() const { return (settings_ & 2) != 0; }
  // Of the memory beyond the first. An end that calls holds the arguments of its own Calls, too.
  std::size_t ceiling() const {
    return (is_client() ? 0 : budget_.held() + kServersCeiling) + (requester_ ? kClientsCeiling : 0);
  }
  // Both ends call, and both serve.
  bool has_reverse() const { return (settings_ & 16) != 0; }
  bool has_all() const { return !is_client() && (settings_ & 4) != 0; }
  Profiles profiles() const {
    std::vector<Protocol> protocols{is_wg07() ? Protocol::k2Wg07 : Protocol::k2Cel05};
    if (has_all()) protocols = {Protocol::k1, Protocol::k2Cel05, Protocol::k2Wg07};
    return profiles_of(protocols);
  }

  void open_client() {
    const Requester::Config config{.credits = kCredits, .call_timeout = std::chrono::milliseconds(60000)};
    requester_ = std::make_unique<Requester>(pd_, *link_, config, kFirstXid);
    if (!has_reverse()) return;
    ReverseResponder::Config served;
    served.programs = programs_;
    served.credits = kReverseCredits;
    reverse_ = std::make_unique<ReverseResponder>(pd_, *link_, served);
  }
  void open_server() {
    Responder::Config config;
    config.credits = {.min = kCredits, .initial = kCredits, .max = kCredits};
    config.max_item = 1 << 20;
    if (has_reverse()) config.reverse_credits = kReverseCredits;
    responder_ = std::make_unique<Responder>(pd_, *link_, pool_, budget_, programs_, config);
    responder_->start(kLen, 4);
    if (!has_reverse()) return;
    const Requester::Config calls{.credits = kReverseCredits, .ends_unanswering = false};
    requester_ = std::make_unique<Requester>(pd_, *link_, calls, kFirstXid);
  }
  // The protocol is decided.
  void start() {
    if ((settings_ & 8) != 0) link_->exchange_properties({.reverse = ReverseSupport::kGeneral}, {});
    if (requester_) requester_->start(kLen, kLen);
    if (responder_) responder_->start(kLen, 4);
    if (reverse_) reverse_->start({kLen, kLen}, 4);
  }

  void deliver(const Octets& message) {
    if (endpoint_->failure() || message.size() > kLen) return;
    if (message.empty() || qp_.num_receives() == 0) return;
    (void)qp_.inject(message);
  }

  // The credit word: mostly more than before, by a little.
  std::uint32_t some_credit(std::uint8_t kind) {
    if ((kind & 0x80) != 0) return input_.u32();
    credit_ += kind & 3u;
    return credit_;
  }

  // A message that the fuzzer needs no luck for. reverse: of the other direction than usual.
  void peer_message(bool reverse) {
    const bool is_reply = is_client() != (reverse && has_reverse());
    const std::uint8_t kind = input_.u8();
    const std::uint8_t which = input_.u8();
    const std::uint32_t xid = kFirstXid + (which & 7u);
    const std::uint32_t credit = some_credit(static_cast<std::uint8_t>(which >> 4 | (which & 8) << 4));
    const std::size_t len = input_.u16() & 0xfff;
    Octets payload = (which & 0x40) != 0 ? Octets(len) : is_reply ? rpc_reply(xid, len) : rpc_call(xid, len);
    if (payload.size() > kLen - 64) payload.resize(kLen - 64);
    deliver(is_wg07() ? wg07_message(kind, xid, credit, payload, is_reply)
                      : cel05_message(kind, xid, credit, payload, is_reply));
  }

  Octets wg07_message(std::uint8_t kind, std::uint32_t xid, std::uint32_t credit, const Octets& payload,
                      bool is_reply) {
    using namespace v2_wg07;
    const auto make = [&](auto body, const Octets& rest) {
      return message_of<v2_wg07::Header>(xid, credit, std::move(body), rest);
    };
    CallInline call;
    if ((kind & 0x40) != 0) call.lists.write_list = {{Segment{5, (kind & 0x80u) << 12, 0}}};
    const v2::Propset props{{kind >> 4 & 7u, {0, 0, kind, kind}}};
    switch (kind & 15) {
      case 0:
      case 1:
      case 2:
      case 3: return is_reply ? make(ReplyMiddle{xid}, payload) : make(CallMiddle{xid}, payload);
      case 4:
      case 5: return is_reply ? make(ReplyInline{}, payload) : make(call, payload);
      case 6: return make(ReplyInline{}, payload);
      case 7: return make(ReplyMiddle{kind}, payload);
      case 8: return make(call, payload);
      case 9: return make(Grant{}, {});
      case 10: return make(Error{.err = static_cast<Err>(kind >> 4)}, {});
      case 11: return make(ConnpropMiddle{props}, {});
      case 12: return make(ConnpropFinal{props}, {});
      case 13: {
        CallExternal external;
        external.lists.call_chunk = {Segment{5, kind, 0}};
        return make(external, {});
      }
      default: return make(CallMiddle{kind}, payload);
    }
  }

  Octets cel05_message(std::uint8_t kind, std::uint32_t xid, std::uint32_t credit, const Octets& payload,
                       bool is_reply) {
    using namespace v2_cel05;
    const auto make = [&](auto body, const Octets& rest) {
      return message_of<v2_cel05::Header>(xid, credit, std::move(body), rest);
    };
    Msg body{.direction = is_reply ? Direction::kReply : Direction::kCall};
    if ((kind & 0x40) != 0) body.lists.write_list = {{Segment{5, (kind & 0x80u) << 12, 0}}};
    const v2::Propset props{{kind >> 4 & 3u, {0, 0, kind, kind}}};
    switch (kind & 15) {
      case 10: return make(Error{.err = static_cast<Err>(kind >> 4)}, {});
      case 11: return make(Connprop{.start = props}, {});
      case 12: return make(Updprop{props}, {});
      case 13: return make(Reqprop{props}, {});
      case 14: return make(Optional{.opttype = kind}, payload);
      default: return make(body, payload);
    }
  }

  void receive_raw() {
    const ConstBytes octets = input_.bytes(input_.u16() & 0x1ff);
    deliver({octets.begin(), octets.end()});
  }

  void make_call(std::size_t len) {
    if (!requester_) return;
    args_.resize(std::max(args_.size(), std::size_t{65536}));
    CallSpec spec;
    spec.program = kProgram;
    spec.version = 1;
    spec.binding = &kBinding;
    spec.args = ConstBytes(args_).first(len / 4 * 4);
    if (requester_->num_outstanding() < 32) (void)requester_->call(spec, [](const Reply&) {});
  }
  void answer_call(std::size_t len) {
    if (service_.calls.empty()) return;
    const ServedCallId id = service_.calls.front().id;
    service_.calls.erase(service_.calls.begin());
    ServedReply reply;
    reply.results.resize(len / 4 * 4);
    if (responder_) (void)responder_->reply(id, std::move(reply));
    if (reverse_) reverse_->reply(id, std::move(reply));
  }

  void pass_time(std::chrono::milliseconds time) {
    now_ += time;
    link_->set_now(now_);
    link_->on_time(now_);
    if (responder_) responder_->on_time(now_);
    if (requester_) requester_->on_time(now_);
    if (reverse_) reverse_->on_time(now_);
    budget_.admit_waiting();
    (void)link_->next_timeout();
  }

  void operation() {
    const std::uint8_t op = input_.u8();
    switch (op & 7) {
      case 0: return receive_raw();
      case 1:
      case 2:
      case 3: return peer_message((op & 0x40) != 0);
      case 4:
        return is_client() != (has_reverse() && (op & 0x40) != 0) ? make_call(input_.u16()) : answer_call(input_.u16());
      case 5: return pass_time(std::chrono::milliseconds((op & 0x80) != 0 ? input_.u16() : 1));
      case 6: qp_.release(1u + (op >> 4)); return;
      default: deliver(is_wg07() ? wg07_message(9, 0, credit_ += op >> 3, {}, false) : Octets()); return;
    }
  }

  // Everything that completed is passed on. No more messages are under way than there are Receives.
  void settle() {
    verbs::Wc wc;
    while (cq_.poll(std::span(&wc, 1)) == 1) link_->on_completion(wc);
    link_->finish_turn();
    must(endpoint_->failure() || qp_.num_receives() <= num_receives_);
    qp_.sent.clear();
    qp_.rdma.clear();
  }

  // A peer that keeps the rules from here on is heard: all its sequences and properties have ended or are refused. With
  // several protocols the connection may have another one than that of these messages.
  void check_alive() {
    qp_.hold_completions = false;
    for (int round = 0; round < 3; ++round) {
      qp_.release();
      settle();
      while (!service_.calls.empty()) answer_call(0);
      settle();
      pass_time(std::chrono::seconds(31));
      settle();
    }
    // Calls that waited for memory.
    for (std::uint32_t i = 0; i < num_receives_; ++i) {
      while (!service_.calls.empty()) answer_call(0);
      settle();
      pass_time(std::chrono::milliseconds(1));
    }
    must(endpoint_->failure() || link_->has_unsent() || qp_.num_receives() == num_receives_);
    // No Call and no part of one is left, while the responder lives.
    must(endpoint_->failure() || (budget_.used() == 0 && budget_.held() == 0));
    std::size_t num_heard = 0;
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (endpoint_->failure() || qp_.broken() || qp_.num_receives() == 0) return;
      const std::uint32_t xid = 0x1234567;
      const Octets payload = rpc_call(xid, 0);
      (void)qp_.inject(is_wg07() ? wg07_message(8, xid, credit_ + 1000, payload, false)
                                 : cel05_message(0, xid, credit_ + 1000, payload, false));
      verbs::Wc wc;
      while (cq_.poll(std::span(&wc, 1)) == 1) link_->on_completion(wc);
      while (!service_.calls.empty()) answer_call(0);
      num_heard += qp_.sent.size();
      settle();
    }
    must(num_heard != 0 || endpoint_->failure() || link_->has_unsent() || has_all());
  }

  Input input_;
  std::uint8_t settings_;
  std::uint8_t limits_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  testing::FakeMemory memory_;
  testing::FakePd pd_{memory_};
  testing::FakeCq cq_;
  testing::FakeQp qp_;
  HoldingService service_;
  std::vector<ServedProgram> programs_{{&kBinding, &service_}};
  BufferPool pool_;
  Budget budget_;
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<Link> link_;
  std::unique_ptr<Responder> responder_;
  std::unique_ptr<Requester> requester_;
  std::unique_ptr<ReverseResponder> reverse_;
  std::size_t num_receives_ = 0;
  Octets args_;
  std::uint32_t credit_ = 8;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Machine(Input({data, size})).run();
  return 0;
}
