// RFC 5042 sections 6.2 and 6.3, the consumer's part: the memory that an RPC-over-RDMA client exposes to a server that
// misuses it.
#include "rpcrdma/client.h"
#include "rpcrdma/testing/engines.h"
#include "tests/conformance/network.h"

namespace weft::conformance {
namespace {

using rpcrdma::Client;
using rpcrdma::Segment;
using rpcrdma::testing::pattern;

constexpr std::size_t kLen = 9000;  // of the argument and of the result: too long to go inline

// One Call with a Read chunk and a Write chunk, and the server, which is the test.
class SecurityRpc : public NetworkTest {
 protected:
  void SetUp() override {
    open();
    inbox_.emplace(*server_->pd, std::size_t{16} << 10, Access::kLocalWrite);
    // The argument and the room for the result lie in the middle of private memory.
    std::copy_n(pattern(kLen).begin(), kLen, argument_.begin() + kLen);
  }
  void TearDown() override {
    links_.clear();
    client_end_.reset();
    NetworkTest::TearDown();
  }

  // A new connection, and the Call on it.
  void call() {
    links_.clear();
    server_end_ = &links_.emplace_back(std::make_unique<Link>())->server;
    auto made = Client::connect(*client_->device, listener_->local_addr(), {});
    ASSERT_TRUE(made.ok()) << made.error().message;
    client_end_ = std::move(*made);
    reply_.reset();
    args_ = rpcrdma::testing::write_args(kLen);
    rpcrdma::CallSpec spec;
    spec.program = rpcrdma::testing::kTestProgram;
    spec.version = rpcrdma::testing::kTestVersion;
    spec.procedure = rpcrdma::testing::kSwap;
    spec.binding = &rpcrdma::testing::test_binding();
    spec.args = args_;
    spec.items = rpcrdma::ArgumentItem{rpcrdma::testing::write_position(),
                                       std::span<const std::uint8_t>(argument_).subspan(kLen, kLen)};
    spec.result_items = std::span(result_).subspan(kLen, kLen);
    spec.max_results = 100;
    ASSERT_TRUE(client_end_->call(spec, [this](const rpcrdma::Reply& reply) { reply_ = reply.status; }).ok());
    ASSERT_TRUE(run_until([&] { return !server_end_->wcs.empty(); }));
    const Octets message(inbox_->octets.begin(), inbox_->octets.begin() + server_end_->wcs.front().byte_len);
    server_end_->wcs.clear();
    header_ = rpcrdma::testing::parse(message);
    ASSERT_EQ(header_.lists.read_list.size(), 1u);
    ASSERT_EQ(header_.lists.write_list.size(), 1u);
    ASSERT_EQ(header_.lists.write_list[0].size(), 1u);
    read_chunk_ = header_.lists.read_list[0].target;
    write_chunk_ = header_.lists.write_list[0][0];
  }

  // The server's Reply: a plain Send, which leaves every invalidation to the client, or one that invalidates.
  void answer(std::optional<std::uint32_t> invalidate = {}) {
    rpcrdma::v1::Header header = header_;
    header.lists.read_list.clear();
    header.lists.write_list[0][0].length = 0;
    const Octets octets = rpcrdma::testing::message(header, rpcrdma::testing::rpc_reply(header.xid));
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(octets.data()), static_cast<std::uint32_t>(octets.size()), 0};
    const verbs::SendWr wr{.sg_list = std::span(&sge, 1),
                           .opcode = invalidate ? WrOpcode::kSendWithInv : WrOpcode::kSend,
                           .send_flags = verbs::SendFlags::kInline | verbs::SendFlags::kSignaled,
                           .invalidate_rkey = invalidate.value_or(0)};
    ASSERT_TRUE(server_end_->qp->post_send(wr).ok());
    ASSERT_TRUE(run_until([&] { return reply_.has_value(); }));
    ASSERT_EQ(*reply_, invalidate ? rpcrdma::CallStatus::kDisconnected : rpcrdma::CallStatus::kSuccess);
    server_end_->wcs.clear();
  }

  bool run_until(const std::function<bool()>& done) {
    return drive([&] {
      client_end_->process(std::chrono::steady_clock::now());
      return done();
    });
  }

  // A Write or Read of the server's; the Terminate that it draws, "" where it succeeds.
  std::string access(WrOpcode opcode, const Mem& local, const Segment& to) {
    EXPECT_TRUE(server_end_->rdma(opcode, {local.sge()}, to.offset, to.handle).ok());
    // A Read tells whether the Write before it was taken.
    if (opcode == WrOpcode::kRdmaWrite) {
      EXPECT_TRUE(server_end_->rdma(WrOpcode::kRdmaRead, {}, 0, 0).ok());
    }
    const std::size_t num = opcode == WrOpcode::kRdmaWrite ? 2 : 1;
    EXPECT_TRUE(run_until([&] { return server_end_->wcs.size() >= num; }));
    const verbs::Wc last = server_end_->wcs.back();
    server_end_->wcs.clear();
    if (last.status == WcStatus::kSuccess) return "";
    char text[16];
    std::snprintf(text, sizeof(text), "%u/%u/%02x", last.vendor_err >> 12, last.vendor_err >> 8 & 15u,
                  last.vendor_err & 255u);
    return text;
  }

  void on_event(CmEvent event) override {
    if (event.type != CmEventType::kConnectRequest) return NetworkTest::on_event(std::move(event));
    server_end_->id = std::move(event.new_id);
    make_qp(*server_, *server_end_, *server_->pd, nullptr,
            {.max_send_wr = 8, .max_recv_wr = 8, .max_inline_data = 512});
    ASSERT_TRUE(server_end_->recv({inbox_->sge()}).ok());
    ASSERT_TRUE(server_end_->id->accept({{}, 16, 16}).ok());
  }

  std::optional<Mem> inbox_;
  Octets argument_ = Octets(3 * kLen, 0xee);
  Octets result_ = Octets(3 * kLen, 0xdd);
  Octets args_;
  std::unique_ptr<Client> client_end_;
  End* server_end_ = nullptr;
  std::optional<rpcrdma::CallStatus> reply_;
  rpcrdma::v1::Header header_;
  Segment read_chunk_, write_chunk_;
};

TEST_F(SecurityRpc, ChunksExposeTheirOctetsOnly) {
  RecordProperty("proves", "SEC-6.3.2-01 SEC-6.3.4-01");
  call();
  EXPECT_EQ(read_chunk_.length, kLen);
  EXPECT_EQ(write_chunk_.length, kLen);
  Mem sink(*server_->pd, kLen, Access::kLocalWrite);
  EXPECT_EQ(access(WrOpcode::kRdmaRead, sink, read_chunk_), "");
  EXPECT_EQ(sink.octets, pattern(kLen));  // the argument, and no earlier octets
  const Mem longer(*server_->pd, kLen + 1, Access::kLocalWrite, 1);
  EXPECT_EQ(access(WrOpcode::kRdmaRead, longer, read_chunk_), "0/1/01");
  call();
  EXPECT_EQ(access(WrOpcode::kRdmaWrite, longer, write_chunk_), "1/1/01");
  call();
  Segment before = write_chunk_;
  --before.offset;
  EXPECT_EQ(access(WrOpcode::kRdmaWrite, sink, before), "1/1/01");
  EXPECT_EQ(result_, Octets(3 * kLen, 0xdd));
  EXPECT_EQ(longer.octets, Octets(kLen + 1, 1));
}

TEST_F(SecurityRpc, ChunksAreForTheirDirectionOnly) {
  RecordProperty("proves", "SEC-6.3.5-01");
  call();
  const Mem mine(*server_->pd, kLen, Access::kLocalWrite, 1);
  EXPECT_EQ(access(WrOpcode::kRdmaRead, mine, write_chunk_), "0/1/02");
  EXPECT_EQ(mine.octets, Octets(kLen, 1));
  call();
  EXPECT_EQ(access(WrOpcode::kRdmaWrite, mine, read_chunk_), "1/1/00");
  EXPECT_EQ(Octets(argument_.begin() + kLen, argument_.begin() + 2 * kLen), pattern(kLen));
}

TEST_F(SecurityRpc, ChunksAreGoneWhenTheCallHasEnded) {
  RecordProperty("proves", "SEC-6.3.3-01");
  const Mem mine(*server_->pd, kLen, Access::kLocalWrite, 1);
  call();
  answer();
  EXPECT_EQ(access(WrOpcode::kRdmaRead, mine, read_chunk_), "0/1/00");
  call();
  answer();
  EXPECT_EQ(access(WrOpcode::kRdmaWrite, mine, write_chunk_), "1/1/00");
  EXPECT_EQ(mine.octets, Octets(kLen, 1));
  EXPECT_EQ(result_, Octets(3 * kLen, 0xdd));
}

// The client has not asked for remote invalidation (RFC 8797, R=0), and does not count on it.
TEST_F(SecurityRpc, InvalidationIsNotLeftToTheServer) {
  RecordProperty("proves", "SEC-6.2.2-03");
  const Mem mine(*server_->pd, kLen, Access::kLocalWrite, 1);
  call();
  answer();
  EXPECT_EQ(access(WrOpcode::kRdmaWrite, mine, write_chunk_), "1/1/00") << "revoked without the server's help";
  // A Reply that invalidates ends the call without a result, whether it names a chunk of the Call or another STag.
  Mem other(*client_->pd, kLen, kAll, 0xcc);
  for (const int which : {0, 1, 2}) {
    SCOPED_TRACE(which);
    call();
    answer(which == 0 ? write_chunk_.handle : which == 1 ? read_chunk_.handle : other.mr->rkey());
  }
  EXPECT_EQ(result_, Octets(3 * kLen, 0xdd));
}

}  // namespace
}  // namespace weft::conformance
