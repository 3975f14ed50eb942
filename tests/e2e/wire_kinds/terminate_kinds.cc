#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

#include "conversation.h"
#include "kinds.h"

namespace weft::e2e {

namespace {

// The responder's memory. Everything is of PD 7, and the stream is number 1.
constexpr std::uint32_t kOpen = 0x10000001;    // remote access to 4 KiB from kBase
constexpr std::uint32_t kOthers = 0x20000002;  // the same, but for another stream
constexpr std::uint32_t kClosed = 0x30000003;  // no remote right
constexpr std::uint32_t kUnknown = 0xdeadbeef;
constexpr std::uint64_t kBase = 0x100000;
constexpr std::uint64_t kEnd = kBase + 4096;
constexpr std::uint64_t kTop = 0xfffffffffffffff8;  // 8 octets to the end of the number space
constexpr std::uint32_t kSink = 0x40000004;         // of no interest to the responder
constexpr std::size_t kRecvLen = 64;

std::string name(Triple what) {
  return fmt::format("Terminate {}/{}/{:02x}", what.layer, what.etype, what.code);
}

void add_memory(Conversation& c) {
  auto& memory = c.side(End::kResponder).memory;
  memory.add_simple(kOpen, 7, kBase, 4096);
  memory.add_simple(kOthers, 7, kBase, 4096).streams = {2};
  auto& closed = memory.add_simple(kClosed, 7, kBase, 4096);
  closed.remote_read = closed.remote_write = false;
}

// A responder that has one receive posted, and is sent one FPDU that it must refuse.
void refused(Capture& capture, Triple what, const Ulpdu& blamed, const Ulpdu& answer,
             const std::function<void(Conversation&)>& prepare = {}) {
  Conversation c(capture, Setup(name(what)));
  c.connect();
  add_memory(c);
  c.side(End::kResponder).recvs.post(1, {{kBase, kRecvLen, {kOpen}}});
  if (prepare) prepare(c);
  c.inject(End::kInitiator, blamed);
  c.expect(End::kResponder, answer);
  c.pump();
  c.check_terminated(End::kResponder, what);
}

void refused_segment(Capture& capture, Triple what, const Ulpdu& blamed,
                     const std::function<void(Conversation&)>& prepare = {}) {
  refused(capture, what, blamed, terminate(what, blamed), prepare);
}

void tagged_buffer(Capture& capture) {
  const Octets payload = pattern(6, 30);
  refused_segment(capture, {1, 1, 0}, tagged(kWrite, kUnknown, kBase, payload));
  refused_segment(capture, {1, 1, 0}, tagged(kWrite, kClosed, kBase, payload, false));
  refused_segment(capture, {1, 1, 1}, tagged(kWrite, kOpen, kEnd - 29, payload));
  refused_segment(capture, {1, 1, 2}, tagged(kWrite, kOthers, kBase, payload));
  refused_segment(capture, {1, 1, 3}, tagged(kWrite, kOpen, kTop, payload));
  Ulpdu version = tagged(kWrite, kOpen, kBase, payload);
  version.dv = 2;
  refused_segment(capture, {1, 1, 4}, version);
}

void untagged_buffer(Capture& capture) {
  Ulpdu queue = send(kSend, 0, 1, 0, pattern(7, 11));
  queue.qn = 5;
  refused_segment(capture, {1, 2, 1}, queue);
  refused_segment(capture, {1, 2, 2}, send(kSend, 0, 1, 0, pattern(8, 12)),
                  [](Conversation& c) { c.side(End::kResponder).recvs.posted.clear(); });
  refused_segment(capture, {1, 2, 3}, send(kSend, 0, 2, 0, pattern(9, 13)));
  refused_segment(capture, {1, 2, 4}, send(kSend, 0, 1, 8, pattern(10, 14)));
  refused_segment(capture, {1, 2, 5}, send(kSendSe, 0, 1, 0, pattern(11, kRecvLen + 1)));
  Ulpdu version = send(kSend, 0, 1, 0, pattern(12, 15));
  version.dv = 3;
  refused_segment(capture, {1, 2, 6}, version);
  // A receive whose memory is gone.
  refused_segment(capture, {1, 0, 0}, send(kSend, 0, 1, 0, pattern(13, 16)), [](Conversation& c) {
    auto& recvs = c.side(End::kResponder).recvs;
    recvs.posted.clear();
    recvs.post(1, {{kBase, kRecvLen, {kUnknown}}});
  });
}

void read_protection(Capture& capture) {
  const auto refused_read = [&](Triple what, std::uint32_t stag, std::uint64_t to) {
    const Ulpdu request = read_request(1, {kSink, 0x1122334455667788, 512, stag, to});
    refused(capture, what, request, terminate_read(what, request));
  };
  refused_read({0, 1, 0}, kUnknown, kBase);
  refused_read({0, 1, 1}, kOpen, kEnd - 511);
  refused_read({0, 1, 2}, kClosed, kBase);
  refused_read({0, 1, 3}, kOthers, kBase);
  refused_read({0, 1, 4}, kOpen, kTop);
}

void rdmap_operation(Capture& capture) {
  refused_segment(capture, {0, 1, 9}, send(kSendInvalidate, kOthers, 1, 0, pattern(14, 17)));
  refused_segment(capture, {0, 2, 9}, send(kSendSeInvalidate, kUnknown, 1, 0, pattern(15, 18)));
  Ulpdu version = send(kSend, 0, 1, 0, pattern(16, 19));
  version.rv = 2;
  refused_segment(capture, {0, 2, 5}, version);
  Ulpdu queue = read_request(1, {kSink, 0, 8, kOpen, kBase});
  queue.qn = 0;
  refused_segment(capture, {0, 2, 6}, queue);
  refused_segment(capture, {0, 1, 0}, atomic_request(1, {0, 1, kUnknown, kBase, 1}));
  refused_segment(capture, {0, 2, 7}, atomic_request(1, {2, 1, kOpen, kBase + 4, 1}));
  Ulpdu cut = read_request(1, {kSink, 0, 8, kOpen, kBase});
  cut.l = false;
  refused_segment(capture, {0, 2, 7}, cut);
}

// Errors that name no segment, of the initiator's own making and not.
void own_fault(Capture& capture) {
  constexpr Triple kWhat{0, 0, 0};
  Conversation c(capture, Setup(name(kWhat)));
  c.connect();
  c.side(End::kInitiator).memory.refuse_windows = true;
  rdmap::SendWr wr;
  wr.op = rdmap::SendOp::kBindWindow;
  wr.args = ddp::WindowBind{};
  c.post(End::kInitiator, std::move(wr));
  c.expect(End::kInitiator, terminate(kWhat));
  c.pump();
  c.check_terminated(End::kInitiator, kWhat);
}

void fault_in_setup(Capture& capture) {
  constexpr Triple kWhat{2, 0, 5};
  Conversation c(capture, Setup(name(kWhat)));
  c.connect();
  c.side(End::kInitiator).stream.fail_setup(c.now);
  c.expect(End::kInitiator, terminate(kWhat));
  c.pump();
}

// A Send that is damaged on its way.
void damaged(Capture& capture, Triple what, const Setup& setup, Damage damage) {
  Conversation c(capture, setup);
  c.connect();
  rdmap::SendWr wr;
  wr.inline_data = pattern(17, 20);
  c.expect(End::kInitiator, send(kSend, 0, 1, 0, wr.inline_data), damage);
  c.post(End::kInitiator, std::move(wr));
  c.expect(End::kResponder, terminate(what));
  c.pump();
  c.check_terminated(End::kResponder, what);
}

void no_header(Capture& capture) {
  own_fault(capture);
  fault_in_setup(capture);
  damaged(capture, {2, 0, 2}, Setup(name({2, 0, 2})), Damage::kLastOctet);
  damaged(capture, {2, 0, 3}, Setup(name({2, 0, 3}), false, true), Damage::kLeadingPointer);
}

}  // namespace

void terminate_kinds(Capture& capture) {
  tagged_buffer(capture);
  untagged_buffer(capture);
  read_protection(capture);
  rdmap_operation(capture);
  no_header(capture);
}

}  // namespace weft::e2e
