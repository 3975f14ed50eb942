// RFC 5042 section 6.2.2 and Appendix A, the server's part: the client, a raw socket, goes on writing to the place into
// which an RPC-over-RDMA server has pulled its argument.
#include "tests/conformance/rdmap_device.h"
#include "tests/rpc/world.h"

namespace weft::conformance {
namespace {

namespace rpc = rpcrdma::testing;

constexpr std::uint32_t kLen = 3000;
constexpr std::uint32_t kXid = 0x51;
constexpr std::uint32_t kSource = 0xc0ffee01;
constexpr std::uint64_t kSourceTo = 0x1000;

// Pulled: a WRITE whose data come by Read chunk, or one that comes so as a whole (a Long Call).
enum class Pulled : std::uint8_t { kItem, kCall };

class SecurityRpcServer : public rpc::World {
 protected:
  void SetUp() override {
    listen();
    file.hold = true;
    also = [this] {
      if (peer_ && peer_->fd) peer_->pump();
    };
  }

  // A new connection, a Call on it, and the server's RDMA Read Request for the chunk: where it wants it put.
  void call(Pulled pulled) {
    peer_ = std::make_unique<Peer>();
    peer_->fd = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(peer_->fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const sockaddr_storage to = server->local_addr();
    ASSERT_EQ(::connect(peer_->fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0)
        << std::strerror(errno);
    peer_->say(sim::startup_frame(mpa::FrameKind::kRequest, 1));
    run_until([this] { return startup_len() != 0; });

    Octets message;
    rpcrdma::xdr::XdrWriter out(message);
    rpcrdma::emit_call(out, {kXid, rpc::kTestProgram, rpc::kTestVersion, rpc::kWrite, {}, {}});
    const std::size_t rpc_header_len = message.size();
    const Octets args = rpc::write_args(kLen);
    out.raw(args);
    rpcrdma::v1::Header header;
    header.xid = kXid;
    header.credit = 1;
    if (pulled == Pulled::kItem) {
      source_ = rpc::pattern(kLen);
      argument_ = source_;
      header.lists.read_list = {
          {static_cast<std::uint32_t>(rpc_header_len + rpc::write_position()), {kSource, kLen, kSourceTo}}};
    } else {
      out.raw(rpc::pattern(kLen));
      source_ = std::exchange(message, {});
      argument_.assign(source_.begin() + static_cast<std::ptrdiff_t>(rpc_header_len), source_.end());
      header.proc = rpcrdma::v1::Proc::kNomsg;
      header.lists.read_list = {{0, {kSource, static_cast<std::uint32_t>(source_.size()), kSourceTo}}};
    }
    peer_->say_ulpdu(send(1, rpc::message(header, message)));
    run_until([this] { return !segments().empty(); });
    const Segment request = segments().at(0);
    ASSERT_FALSE(request.tagged);
    ASSERT_EQ(request.opcode, 1u);
    ASSERT_EQ(request.payload.size(), 28u);
    ASSERT_EQ(get(request.payload, 12, 4), source_.size());
    ASSERT_EQ(get(request.payload, 16, 4), kSource);
    ASSERT_EQ(get(request.payload, 20, 8), kSourceTo);
    sink_stag_ = static_cast<std::uint32_t>(get(request.payload, 0, 4));
    sink_to_ = get(request.payload, 4, 8);
  }

  // The Read Response in two segments.
  Octets first_half() const { return read_response(sink_stag_, sink_to_, ConstBytes(source_).first(kHalf), false); }
  Octets second_half() const {
    return read_response(sink_stag_, sink_to_ + kHalf, ConstBytes(source_).subspan(kHalf), true);
  }
  // Over all of the sink.
  Octets overwrite() const { return write(sink_stag_, sink_to_, Octets(source_.size(), 0xbd)); }

  // The server's last word is the Terminate for `bad`, by default with DDP's code for an invalid STag; then a FIN.
  void expect_refused(const Octets& bad, unsigned layer_etype = 0x11, unsigned code = 0x00) {
    run_until([this] { return (peer_->eof || peer_->reset) && server->num_connections() == 0; });
    EXPECT_FALSE(peer_->reset);
    const auto heard = segments();
    ASSERT_EQ(heard.size(), 2u);  // the Read Request, and
    EXPECT_EQ(heard[1].ulpdu, terminate_for(bad, layer_etype, code));
    EXPECT_EQ(server->counters().write_octets_rx, 0u);
  }

  // Octets of the MPA Reply; 0 while it is not all there.
  std::size_t startup_len() const {
    if (peer_->heard.size() < 20) return 0;
    const std::size_t len = 20 + get(peer_->heard, 18, 2);
    return peer_->heard.size() < len ? 0 : len;
  }
  std::vector<Segment> segments() const {
    std::vector<Segment> all;
    for (const Octets& ulpdu : sim::deframe(ConstBytes(peer_->heard).subspan(startup_len())))
      all.push_back(decode(ulpdu));
    return all;
  }

  static constexpr std::size_t kHalf = 1200;

  std::unique_ptr<Peer> peer_;
  Octets source_;    // the chunk's contents
  Octets argument_;  // the part that the handler is to see
  std::uint32_t sink_stag_ = 0;
  std::uint64_t sink_to_ = 0;
};

Octets seen(const rpcrdma::ServedCall& call, Pulled pulled) {
  return rpc::copy_of(pulled == Pulled::kCall ? call.args : call.items.at(0).data.octets());
}

TEST_F(SecurityRpcServer, NoWriteReachesAnArgumentThatWasPulled) {
  RecordProperty("proves", "SEC-6.2.2-01 SEC-A-01");
  for (const Pulled pulled : {Pulled::kItem, Pulled::kCall}) {
    SCOPED_TRACE(pulled == Pulled::kItem ? "item" : "Long Call");
    ASSERT_NO_FATAL_FAILURE(call(pulled));
    peer_->say_ulpdu(first_half());
    peer_->say_ulpdu(second_half());
    run_until([this] { return file.held.size() == 1; });
    ASSERT_EQ(file.held.size(), 1u);
    if (pulled == Pulled::kItem) {
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(file.held[0].items.at(0).data.octets().data()), sink_to_)
          << "the Write is not aimed at what the handler holds";
    }
    EXPECT_EQ(seen(file.held[0], pulled), argument_);
    const Octets late = overwrite();
    peer_->say_ulpdu(late);
    expect_refused(late);
    EXPECT_EQ(seen(file.held[0], pulled), argument_);
    file.answer_held();  // it decodes only now
    EXPECT_EQ(file.data, rpc::pattern(kLen));
    file.data.clear();
  }
}

TEST_F(SecurityRpcServer, NoWriteReachesAnArgumentThatIsBeingPulled) {
  for (const Pulled pulled : {Pulled::kItem, Pulled::kCall}) {
    for (const bool amid : {false, true}) {
      SCOPED_TRACE(pulled == Pulled::kItem ? "item" : "Long Call");
      SCOPED_TRACE(amid ? "amid the Read Response" : "before the Read Response");
      ASSERT_NO_FATAL_FAILURE(call(pulled));
      const Octets early = overwrite();
      Octets fpdus;
      for (const Octets& ulpdu : {amid ? first_half() : early, amid ? early : first_half(), second_half()}) {
        const Octets fpdu = sim::frame_fpdu(ulpdu);
        fpdus.insert(fpdus.end(), fpdu.begin(), fpdu.end());
      }
      peer_->say(fpdus);  // all at once: the octets behind the Write must not complete the Read either
      if (amid) {
        expect_refused(early, 0x02, 0x06);  // no Write begins inside another message, wherever it goes
      } else {
        expect_refused(early);
      }
      EXPECT_EQ(file.num_calls, 0u);
      EXPECT_EQ(server->buffers().in_use(), 0u);
    }
  }
}

}  // namespace
}  // namespace weft::conformance
