// Whether the second opinion notices faults of the encoders: each fault of faults.tsv is on once, while two ends talk
// over fake verbs, and one of its rules has to be broken in the transcript of their posts.
#include "tests/wire_v2/planted/planted.h"

#include <gtest/gtest.h>

#include <sstream>

#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/reverse.h"
#include "tests/wire_v2/heard.h"

namespace weft::wire_v2 {
namespace {

int fault_that_is_on = 0;

}  // namespace

bool planted(int number) {
  return number == fault_that_is_on;
}

namespace {

using namespace rpcrdma::testing;
using rpcrdma::ChunkUse;
using rpcrdma::Protocol;
using rpcrdma::ReverseSupport;
using rpcrdma::ServedCall;
using rpcrdma::ServedReply;

struct PlantedFault {
  int number;
  const char* rules;  // one of them has to notice
  const char* words;
};

constexpr PlantedFault kFaults[] = {
#include "faults.inc"
};

// Two ends talk in one draft, and every encoder is used: Calls and Replies inline, by chunks and in parts, errors,
// properties, GRANTs. An end that cannot read the other one says less.
class Talk {
 public:
  explicit Talk(Protocol protocol) : protocol_(protocol) {}

  void forms() {
    // Windows, so that a Call names a handle. Few credits, so that GRANTs are due.
    open({.credits = 8, .windows = true, .chunks = {.max_continued_call = 0, .max_continued_reply = 0}});
    call(kNull);
    call(kWrite, write_args(20000), 20000);
    call(kRead, read_args_of(20000), 0, 20000);
    call(kReaddir, Bytes(20000), 0, 0, 20000);
    close();
  }
  void parts() {
    open({.credits = 8});
    call(kNull);
    for (int i = 0; i < 4; ++i) call(kReaddir, Bytes(12000), 0, 0, 8000);
    close();
  }
  // The credits of Calls without Replies come by GRANT. Only wg07 has such Calls.
  void one_way() {
    open({.credits = 8});
    call(kNull);
    auto spec = call_of(test_binding());
    spec.call_only = true;
    responder_->service.answer = nullptr;
    for (int i = 0; i < 20; ++i) {
      (void)requester_->requester->call(spec, [](const rpcrdma::Reply&) {});
      pump(*requester_, *responder_);
      for (const ServedCall& served : responder_->service.calls) (void)responder_->responder->finish(served.id);
      responder_->service.calls.clear();
      pump(*requester_, *responder_);
    }
    close();
  }
  void refusals() {
    open({.credits = 8, .chunks = {.max_segments = 4}}, 1);
    call(kNull);
    call(kWrite, write_args(20000), 20000, 0, 0, 4);
    close();
  }
  void properties() {
    ReverseOptions options{.protocol = protocol_};
    FakeMemory memory;
    ServerEnd server(memory, options);
    ClientEnd client(memory, options);
    FakeQp::connect(client.qp, server.qp);
    client.link->exchange_properties({.reverse = ReverseSupport::kGeneral}, {});
    server.link->exchange_properties({}, {});
    (void)client.requester->call(call_of(test_binding()), [](const rpcrdma::Reply&) {});
    pump(client, server);
  }

 private:
  struct Options {
    std::uint32_t credits = 32;
    bool windows = false;
    ChunkUse chunks = {};
  };
  static constexpr int kMostTurns = 1000;

  void open(const Options& options, std::size_t max_segments = 128) {
    responder_ = std::make_unique<ResponderEnd>(memory_, ResponderEnd::Options{.credits = options.credits,
                                                                               .max_segments = max_segments,
                                                                               .invalidates = options.windows,
                                                                               .protocols = {protocol_}});
    requester_ = std::make_unique<RequesterEnd>(
        memory_,
        RequesterEnd::Options{
            .credits = options.credits, .chunks = options.chunks, .windows = options.windows, .protocol = protocol_});
    FakeQp::connect(requester_->qp, responder_->qp);
    responder_->service.answer = [this](ServedCall& served) { answer(served); };
  }
  void close() {
    requester_.reset();
    responder_.reset();
  }
  template <typename One, typename Other>
  static void pump(One& one, Other& other) {
    for (int i = 0; i < kMostTurns && one.pump() + other.pump() != 0; ++i) {
    }
  }
  static Bytes read_args_of(std::uint32_t len) {
    Bytes args;
    rpcrdma::xdr::XdrWriter(args).u32(len);
    return args;
  }

  // A Call whose arguments have `data_len` octets of data in `num_pieces`, and whose results have `room_len` octets.
  void call(std::uint32_t procedure, const Bytes& args = {}, std::size_t data_len = 0, std::size_t room_len = 0,
            std::size_t max_results = 8, std::size_t num_pieces = 1) {
    const Bytes data(data_len);
    std::vector<ConstBytes> pieces;
    for (std::size_t i = 0; i < num_pieces; ++i) {
      pieces.push_back(ConstBytes(data).subspan(i * data_len / num_pieces, data_len / num_pieces));
    }
    Bytes room(room_len);
    std::vector<rpcrdma::ArgumentItem> items;
    if (data_len != 0) items.push_back({write_position(), pieces});
    auto spec = call_of(test_binding(), procedure, args);
    spec.items = items;
    if (room_len != 0) spec.result_items = room;
    spec.max_results = max_results;
    const auto called = requester_->requester->call(spec, [](const rpcrdma::Reply&) {});
    pump(*requester_, *responder_);
    if (called.ok()) requester_->requester->cancel(*called);
    pump(*requester_, *responder_);
  }
  void answer(ServedCall& served) {
    ServedReply reply;
    rpcrdma::xdr::XdrWriter out(reply.results);
    if (served.procedure == kRead) {
      out.u32(20000);
      reply.add_item(responder_->pool.take(20000), 20000);
      out.u32(0);
    } else if (served.procedure == kReaddir) {
      reply.results.resize(8000);
    }
    (void)responder_->responder->reply(served.id, std::move(reply));
  }

  Protocol protocol_;
  FakeMemory memory_;
  std::unique_ptr<ResponderEnd> responder_;
  std::unique_ptr<RequesterEnd> requester_;
};

std::vector<std::string> faults_of_talks() {
  Heard heard;
  verbs::testing::observe_posts(heard);
  for (const Protocol protocol : {Protocol::k2Cel05, Protocol::k2Wg07}) {
    Talk talk(protocol);
    talk.forms();
    talk.parts();
    talk.one_way();
    talk.refusals();
    talk.properties();
  }
  verbs::testing::ignore_posts(heard);
  const auto verdict = heard.take().judge();
  EXPECT_GT(verdict.num_messages, 20u);
  return verdict.faults;
}

bool is_noticed(const PlantedFault& fault, const std::vector<std::string>& broken) {
  std::istringstream rules(fault.rules);
  for (std::string rule; rules >> rule;) {
    for (const std::string& text : broken) {
      if (text.starts_with(rule + ":")) return true;
    }
  }
  return false;
}

TEST(PlantedFaults, NothingIsNoticedWithoutThem) {
  fault_that_is_on = 0;
  EXPECT_EQ(faults_of_talks(), std::vector<std::string>());
}

TEST(PlantedFaults, EachOfTwentyIsNoticed) {
  EXPECT_EQ(std::size(kFaults), 20u);
  for (const PlantedFault& fault : kFaults) {
    fault_that_is_on = fault.number;
    const auto broken = faults_of_talks();
    EXPECT_TRUE(is_noticed(fault, broken)) << fault.words << ", and noticed was " << ::testing::PrintToString(broken);
  }
  fault_that_is_on = 0;
}

}  // namespace
}  // namespace weft::wire_v2
