// The way of a Client through the versions: what it asks next after a refusal, silence or a hang-up, with each draft as
// the version that it tries first. The test is the server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "rpcrdma/testing/client_negotiation.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

struct EachDraftTest : ClientNegotiationTest, ::testing::WithParamInterface<Protocol> {
  EachDraftTest() { own = {GetParam(), Protocol::k1}; }
  // The requirement's row in the table of the draft.
  static const char* row(const char* cel05, const char* wg07) { return GetParam() == Protocol::k2Cel05 ? cel05 : wg07; }
};

INSTANTIATE_TEST_SUITE_P(Version2, EachDraftTest, ::testing::Values(Protocol::k2Cel05, Protocol::k2Wg07),
                         [](const auto& draft) { return draft.param == Protocol::k2Cel05 ? "cel05" : "wg07"; });

TEST_P(EachDraftTest, AVersion1ServerIsAskedInItsOwnVersion) {
  RecordProperty("proves", row("R2-8.2-2 R2-8.2-6", "W2-4.3.2-2 W2-4.3-2 W2-7.1.1-3"));
  ask();
  for (int i = 0; i < 4; ++i) call();
  answer_last(kServes1, 0, 99);
  EXPECT_EQ(client->state(), State::kConnecting);
  EXPECT_THAT(versions(), ElementsAre(2u, 1u)) << "the credits of ERR_VERS mean nothing";
  answer_last(kServes1, 0, 2);
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_THAT(versions(), ElementsAre(2u, 1u, 1u, 1u));
  EXPECT_EQ(device.num_attempts(), 1u);
}

TEST_P(EachDraftTest, ASilentServerGetsVersion1OverAnotherConnection) {
  RecordProperty("proves", row("R2-8.2-4", "W2-4.3.2-3"));
  ask();
  call();
  run(999);
  EXPECT_EQ(device.num_attempts(), 1u);
  expect_wakes_at(1000);
  run(1000);
  EXPECT_EQ(client->state(), State::kReady);
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_EQ(device.num_attempts(), 2u);
  EXPECT_THAT(versions(), ElementsAre(1u)) << "the Call itself";
  answer(0, 1001);
  EXPECT_THAT(ended, ElementsAre(Pair(0, CallStatus::kSuccess)));
  EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("no answer to a first message of RPC-over-RDMA " +
                                                 std::string(protocol_str(GetParam())) + " within 1000 ms"),
                                       HasSubstr("connecting again, with version 1")));
  // The end of that connection is the end of a client that does not reconnect.
  device.break_connection();
  run(1002);
  EXPECT_EQ(client->state(), State::kClosed);
  EXPECT_EQ(device.num_attempts(), 2u);
}

TEST_P(EachDraftTest, AServerThatHangsUpGetsVersion1OverAnotherConnection) {
  RecordProperty("proves", row("R2-8.2-4", "W2-4.3.2-3"));
  ask();
  device.break_connection("hung up");
  run(1);
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_EQ(device.num_attempts(), 2u);
  EXPECT_THAT(sends(), IsEmpty());
}

TEST_P(EachDraftTest, AServerThatHangsUpBehindItsRefusalToo) {
  RecordProperty("proves", row("R2-8.2-3", "W2-4.3.2-3"));
  ask({.reconnect = kReconnect});
  answer_last(kServes1, 0);
  EXPECT_THAT(versions(), ElementsAre(2u, 1u));
  device.break_connection("hung up");
  run(1);
  EXPECT_EQ(client->protocol(), Protocol::k1);
  EXPECT_EQ(device.num_attempts(), 2u);
  EXPECT_THAT(sends(), IsEmpty());
  // And from then on.
  call();
  run(1);
  device.break_connection();
  run(1);
  run(101);
  EXPECT_EQ(device.num_attempts(), 3u);
  EXPECT_THAT(versions(), ElementsAre(1u));
}

// A late or lost answer is no proof that the server speaks its newer version no more.
TEST_P(EachDraftTest, AServerThatSpokeTheVersionIsAskedForItAgain) {
  for (const bool hangs_up : {false, true}) {
    ask({.reconnect = kReconnect});
    answer_last(GetParam() == Protocol::k2Cel05 ? kServesCel05 : kServesWg07, 0);
    ASSERT_EQ(client->protocol(), GetParam());
    device.break_connection();
    const auto end_unanswered = [&](int& ms) {
      const std::size_t before = device.num_attempts();
      for (const int end = ms + 5000; device.num_attempts() == before && ms < end;) run(++ms);
      ASSERT_EQ(device.num_attempts(), before + 1);
      run(ms);
    };
    int ms = 0;
    end_unanswered(ms);
    EXPECT_THAT(versions(), ElementsAre(2u));
    if (hangs_up) device.break_connection("hung up");
    end_unanswered(ms);
    EXPECT_THAT(versions(), ElementsAre(2u)) << "asked again";
    if (hangs_up) device.break_connection("hung up");
    end_unanswered(ms);
    EXPECT_EQ(client->protocol(), Protocol::k1) << "twice is enough";
    client.reset();
    servers.forget({}, own);
  }
}

// One late or lost answer made the client speak version 1, and the server's refusal shows that this was wrong.
TEST_P(EachDraftTest, ARefusalOfVersion1LeadsBackToTheNewerOne) {
  const Profiles server = {&profile_of(GetParam())};
  for (const bool hangs_up : {false, true}) {
    ended.clear();
    const std::size_t first = num_calls, attempts = device.num_attempts();
    ask();
    call();
    call();
    run(0);
    if (hangs_up) device.break_connection("hung up");
    run(1000);
    EXPECT_THAT(versions(), ElementsAre(1u)) << "the first Call";
    const std::uint32_t xid = sent(0).xid;
    answer_last(server, 1001);
    EXPECT_EQ(device.num_attempts(), attempts + 3);
    EXPECT_EQ(client->state(), State::kConnecting);
    EXPECT_THAT(versions(), ElementsAre(2u));
    EXPECT_THAT(ended, IsEmpty());
    answer_last(server, 1002);
    EXPECT_EQ(client->protocol(), GetParam());
    EXPECT_EQ(servers.find({}, own, at(1002)), GetParam());
    ASSERT_THAT(versions(), ElementsAre(2u, 2u, 2u));
    EXPECT_EQ(*profile_of(GetParam()).reply_xid(sends()[1]), xid) << "the server never ran it";
    client.reset();
    EXPECT_THAT(ended, ElementsAre(Pair(first, CallStatus::kDisconnected), Pair(first + 1, CallStatus::kDisconnected)));
    servers.forget({}, own);
  }
  EXPECT_THAT(lines.all(), ::testing::Contains(HasSubstr("refuses RPC-over-RDMA version 1")));
}

// The server ends the connection right behind its refusal.
TEST_P(EachDraftTest, ARefusalOfVersion1CountsAlsoWhereTheConnectionEndsWithIt) {
  ask();
  call();
  run(1000);
  ASSERT_TRUE(device.qp().inject(*first_answer({&profile_of(GetParam())}, sends().back())));
  device.break_connection("hung up");
  run(1001);
  EXPECT_EQ(device.num_attempts(), 3u);
  EXPECT_THAT(versions(), ElementsAre(2u));
  EXPECT_THAT(ended, IsEmpty());
}

// A client that does not reconnect gives such a server one more question, and no more.
TEST_P(EachDraftTest, AServerThatRefusesVersion1AndIsSilentIsNotAskedForEver) {
  for (const bool is_known : {false, true}) {
    ended.clear();
    const std::size_t first = num_calls, attempts = device.num_attempts();
    if (is_known) servers.learn({}, own, GetParam(), at(0));
    ask();
    call();
    int ms = is_known ? 1000 : 0;
    run(ms);
    run(ms += 1000);
    answer_last({&profile_of(GetParam())}, ++ms);
    for (int i = 0; i < 2; ++i) run(ms += 1000);
    expect_closed("no answer to a first message of RPC-over-RDMA");
    EXPECT_EQ(device.num_attempts(), attempts + (is_known ? 5 : 4));
    EXPECT_THAT(ended, ElementsAre(Pair(first, CallStatus::kDisconnected)));
  }
}

// A client that reconnects goes on asking within its policy, and never in version 1.
TEST_P(EachDraftTest, AClientThatReconnectsKeepsToTheVersionsThatTheServerNamed) {
  const Profiles server = {&profile_of(GetParam())};
  ReconnectPolicy reconnect = kReconnect;
  reconnect.max_time = milliseconds(60000);
  ask({.reconnect = reconnect});
  call();
  run(1000);
  answer_last(server, 1001);
  int ms = 1001;
  while (device.num_attempts() < 8 && ms < 60000) {
    EXPECT_THAT(versions(), ElementsAre(2u)) << ms;
    const std::size_t before = device.num_attempts();
    while (device.num_attempts() == before && ms < 60000) run(++ms);
  }
  ASSERT_EQ(device.num_attempts(), 8u);
  answer_last(server, ms);
  EXPECT_EQ(client->protocol(), GetParam());
  EXPECT_THAT(ended, IsEmpty());
}

// A connection in a version that the server refuses is of no use, so the time of the policy goes on.
TEST_P(EachDraftTest, ARefusalOfVersion1GivesAServerNoMoreTime) {
  const Profiles server = {&profile_of(GetParam())};
  ask({.reconnect = kReconnect});
  answer_last(server, 0);
  call();
  device.break_connection("hung up");
  int ms = 0;
  while (client->protocol() != Protocol::k1 && ms < 5000) run(++ms);
  ASSERT_EQ(ms, 2101) << "the delay, and two questions";
  answer_last(server, ms);
  EXPECT_EQ(client->state(), State::kConnecting);
  for (int i = 0; i < 2; ++i) run(ms += 1000);
  expect_closed("no answer to a first message of RPC-over-RDMA");
}

// What a server does with a message. The numbers are the version that its ERR_VERS names. kAnswers: it hangs up behind
// its Reply.
enum class Whim { kSilent, kHangsUp, kNames1, kNames2, kAnswers };

struct Whims {
  Whim newer, question_of_1, call_of_1;
};

// A server on the device, whose draft of version 2 is `draft`.
class CapriciousServer {
 public:
  CapriciousServer(FakeDevice& device, Protocol draft, const Whims& whims)
      : device_(device), draft_(draft), whims_(whims) {}

  // Whether there was a message that it had not taken yet.
  bool take_message() {
    if (std::exchange(connection_, device_.num_attempts()) != device_.num_attempts()) num_taken_ = 0;
    if (!device_.has_connection() || num_taken_ == device_.qp().sent.size()) return false;
    const Octets message = device_.qp().sent[num_taken_++];
    switch (whim(message)) {
      case Whim::kSilent: break;
      case Whim::kHangsUp: device_.break_connection("hung up"); break;
      case Whim::kNames1: refuse(message, 1); break;
      case Whim::kNames2: refuse(message, 2); break;
      case Whim::kAnswers: answer_once(message); break;
    }
    return true;
  }

 private:
  Whim whim(const Octets& message) const {
    if (word_of(message, 1) == 2) return whims_.newer;
    // Seven words of version 1's header without chunks, then the XID, CALL and 2, then the program.
    return word_of(message, 10) == 0 ? whims_.question_of_1 : whims_.call_of_1;
  }
  // Later messages of this version meet a hang-up.
  void answer_once(const Octets& message) {
    const bool answers = !std::exchange(has_answered_, true);
    EXPECT_TRUE(!answers || device_.qp().inject(*first_answer({&profile_of(draft_)}, message)));
    device_.break_connection("hung up");
  }
  void refuse(const Octets& message, std::uint32_t named) {
    rpcrdma::Message error;
    error.type = rpcrdma::Message::Type::kError;
    error.xid = word_of(message, 0);
    error.version = word_of(message, 1);
    error.credit = 8;
    error.error = {.code = TransportError::Code::kVersion, .low = named, .high = named};
    Octets octets;
    xdr::XdrWriter out(octets);
    profile_of(error.version == 2 ? draft_ : Protocol::k1).emit(out, error);
    ASSERT_TRUE(device_.qp().inject(octets));
  }

  FakeDevice& device_;
  Protocol draft_;
  Whims whims_;
  std::size_t connection_ = 0;
  std::size_t num_taken_ = 0;
  bool has_answered_ = false;
};

// Whatever a server answers to whichever message, a client without an answer makes a bounded number of connections.
TEST_P(EachDraftTest, AServerThatContradictsItselfIsNotAskedForEver) {
  constexpr Whim kAll[] = {Whim::kSilent, Whim::kHangsUp, Whim::kNames1, Whim::kNames2, Whim::kAnswers};
  std::map<bool, std::size_t> most;  // by whether the server was known
  for (unsigned i = 0; i < 5 * 4 * 4 * 2 * 2; ++i) {
    const Whims whims{kAll[i % 5], kAll[i / 5 % 4], kAll[i / 20 % 4]};
    const bool is_known = i / 80 % 2 != 0, reconnects = i / 160 != 0;
    SCOPED_TRACE(::testing::Message() << int(whims.newer) << int(whims.question_of_1) << int(whims.call_of_1)
                                      << (is_known ? " known" : "") << (reconnects ? " reconnects" : ""));
    servers.forget({}, own);
    if (is_known) servers.learn({}, own, GetParam(), at(0));
    const std::size_t attempts = device.num_attempts();
    lines.clear();
    ended.clear();
    ask(reconnects ? ClientConfig{.reconnect = kReconnect} : ClientConfig{});
    call();
    CapriciousServer server(device, GetParam(), whims);
    for (int ms = 0; ms < 8000 && ended.empty(); ms += 10) {
      run(ms);
      while (server.take_message()) {
        run(ms);
        ASSERT_LT(device.num_attempts() - attempts, 40u);
      }
    }
    const std::size_t num = device.num_attempts() - attempts;
    // An answer makes the next attempt of the policy one to a server that spoke a newer version.
    const std::size_t after_answer = whims.newer == Whim::kAnswers ? 3 : 0;
    EXPECT_LE(num, (is_known ? 5u : 4u) + 2 * lines.num_with("connecting again in") + after_answer);
    if (!reconnects) most[is_known] = std::max(most[is_known], num);
    client.reset();
  }
  EXPECT_EQ(most[false], 4u) << "what the README says";
  EXPECT_EQ(most[true], 5u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
