#include "rdmap/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ddp/segment.h"
#include "rdmap/header.h"

namespace weft::rdmap {

namespace {

constexpr DiagnosisRow kDiagnosisRows[] = {
    {Layer::kRdma, 0, -1, -1, "RDMAP-4.8-06",
     "a failure at the end that sent it, not a message of the other: no memory, a work request that named memory which "
     "is not registered any more, or its program ended the connection like this",
     "the peer's log (dmesg where its kernel does the RDMA), then connect again",
     "the first completion of ours that failed: memory has to stay registered until its request has completed"},

    // ---- Read Requests and invalidations, refused by the owner of the memory
    {Layer::kRdma, 1, 0x00, -1, "RDMAP-7.2-06",
     "an RDMA Read from an STag that was never registered, or was invalidated or deregistered before the Read came",
     "read from an STag only until the message that gives it back; the peer must keep the memory registered until then",
     "keep the source memory registered until the peer has said that it is done with it"},
    {Layer::kRdma, 1, 0x01, -1, "RDMAP-7.2-08",
     "an RDMA Read that begins before the registered memory or ends behind it",
     "compare TO and length of the Read with what the peer advertised",
     "compare the TO and length that were advertised with those of the memory region"},
    {Layer::kRdma, 1, 0x02, -1, "SEC-6.3.5-01", "an RDMA Read from memory that was registered without remote read",
     "the peer has to register that memory for remote read; or it is meant for Writes only",
     "register the memory with remote read, or find out why the peer reads what it should write"},
    {Layer::kRdma, 1, 0x03, -1, "RDMAP-7.2-07",
     "an RDMA Read from an STag of another Protection Domain, or of a window of another connection",
     "use an STag only on the connection on which it was advertised",
     "register the memory in the Protection Domain of this connection's queue pair"},
    {Layer::kRdma, 1, 0x04, -1, "RDMAP-7.2-09", "an RDMA Read whose TO plus length passes 2^64",
     "a TO in the wrong byte order looks like this: it is big-endian on the wire",
     "the peer's TO: one in the wrong byte order looks like this"},
    {Layer::kRdma, 1, 0x09, -1, "RDMAP-7.2-04",
     "a Send with Invalidate that names an STag of another connection or Protection Domain",
     "invalidate only STags that came over this connection",
     "the peer invalidates an STag that is not its own to invalidate"},
    {Layer::kRdma, 1, 0xff, -1, "RDMAP-4.8-07", "an RDMA Read or an invalidation that was refused without a reason",
     "the peer's log: it gives no reason on the wire", "the log lines before this one"},

    // ---- remote operation
    {Layer::kRdma, 2, 0x05, -1, "RDMAP-7.2-03",
     "a message of another version of RDMAP: a peer of the RDMA Consortium's drafts has version 0",
     "SoftConfig::mpa_revision 0, with which both generations are served",
     "SoftConfig::mpa_revision 0, with which both generations are served"},
    {Layer::kRdma, 2, 0x06, -1, "RDMAP-7.2-02",
     "a message of a kind that the other end does not know: Atomics and Immediate Data (RFC 7306) are unknown to Linux "
     "siw and to most RNICs",
     "no Atomics and no Immediate Data with this peer", "a program at the peer without Atomics and Immediate Data"},
    {Layer::kRdma, 2, 0x07, -1, "RDMAP-4.8-08 EXT-8.2-02",
     "more RDMA Reads at once than the other end's IRD (Linux siw says it like this), or an Atomic whose address is no "
     "multiple of 8",
     "SoftConfig::ord 1, then more; Atomics at addresses that are multiples of 8",
     "a larger SoftConfig::ird; a peer that keeps to the IRD that it was told"},
    {Layer::kRdma, 2, 0x08, -1, "RDMAP-4.8-08",
     "the RDMA engine at the end that sent it has failed for all connections",
     "the peer's log; its RDMA device or module may have to be loaded anew", "restart this program"},
    {Layer::kRdma, 2, 0x09, -1, "RDMAP-7.2-04",
     "a Send with Invalidate that names an STag which is unknown, invalidated already, or shared by several "
     "connections",
     "invalidate each STag once, and only memory windows or fast registrations of this connection",
     "the peer invalidates an STag twice, or one that cannot be invalidated from afar: register a window for it"},
    {Layer::kRdma, 2, 0xff, -1, "RDMAP-4.8-08", "an operation that was refused without a reason",
     "the peer's log: it gives no reason on the wire", "the log lines before this one"},

    // ---- DDP, tagged: RDMA Writes and Read Responses
    {Layer::kDdp, 0, 0x00, -1, "DDP-7.2-02",
     "placement failed at the end that sent it, or it was sent a segment shorter than a DDP header",
     "the peer's log; a capture of the connection shows whether a segment is cut short",
     "the peer sends segments that cannot be: its framing is broken, or something between changes the bytes"},
    {Layer::kDdp, 1, 0x00, -1, "DDP-7.1-11 DDP-7.2-03",
     "an RDMA Write to an STag that was never registered, was invalidated or deregistered before the Write came, or "
     "has "
     "no right of remote write, for which DDP has no code of its own (Linux siw and Weft report that like this)",
     "write to an STag only until the message that gives it back; the peer must have registered it for remote write",
     "register the memory with remote write and keep it registered until the peer has said that it is done"},
    {Layer::kDdp, 1, 0x01, -1, "DDP-7.2-04",
     "an RDMA Write that begins before the registered memory or ends behind it, or a Read Response that is not what "
     "was "
     "asked for",
     "compare TO and length of the Write with what the peer advertised",
     "compare the TO and length that were advertised with those of the memory region"},
    {Layer::kDdp, 1, 0x02, -1, "DDP-7.2-05",
     "an RDMA Write to an STag of another Protection Domain, or of a window of another connection",
     "use an STag only on the connection on which it was advertised",
     "register the memory in the Protection Domain of this connection's queue pair"},
    {Layer::kDdp, 1, 0x03, -1, "DDP-7.2-06", "an RDMA Write whose TO plus length passes 2^64",
     "a TO in the wrong byte order looks like this: it is big-endian on the wire",
     "the peer's TO: one in the wrong byte order looks like this"},
    {Layer::kDdp, 1, 0x04, -1, "DDP-7.2-07",
     "a segment of another version of DDP: a peer of the RDMA Consortium's drafts has version 0",
     "SoftConfig::mpa_revision 0, with which both generations are served",
     "SoftConfig::mpa_revision 0, with which both generations are served"},

    // ---- DDP, untagged: Sends (queue 0), Read and Atomic Requests (1), Terminates (2)
    {Layer::kDdp, 2, 0x01, -1, "DDP-7.2-08",
     "a message for a queue that is not there: there are 0, 1 and 2, and 3 for Atomics (RFC 7306)",
     "no Atomics with this peer", "a peer that keeps to RFC 5040, or its Atomics switched off"},
    {Layer::kDdp, 2, 0x02, 1, "DDP-7.2-09", "more RDMA Reads or Atomics at once than the other end's IRD",
     "SoftConfig::ord 1, then more; with MPA revision 1 no end tells the other how many it takes "
     "(SoftConfig::mpa_revision 2)",
     "a larger SoftConfig::ird; a peer that keeps to the IRD that it was told"},
    {Layer::kDdp, 2, 0x02, 2, "DDP-7.2-09", "a second Terminate on one connection", "nothing: the first one counts",
     "nothing: the first one counts"},
    {Layer::kDdp, 2, 0x02, -1, "DDP-7.2-09",
     "a message found no Receive posted: more of them at once than credits allow, or Receives that were posted too "
     "late",
     "a smaller ClientConfig::credits; where the peer is Linux siw also a smaller ClientConfig::inline_threshold: it "
     "answers a Send that is longer than "
     "its Receive like this",
     "a larger ClientConfig::credits here, or a peer that keeps to those granted; Receives have to be posted before "
     "the connection "
     "is"},
    {Layer::kDdp, 2, 0x03, -1, "DDP-7.2-10",
     "a message out of order, lost or sent twice: the two ends count differently",
     "the peer's version: a correct stack never does this over TCP; a capture shows which MSN is missing",
     "the peer's version: a correct stack never does this over TCP; a capture shows which MSN is missing"},
    {Layer::kDdp, 2, 0x04, -1, "DDP-7.2-11", "a segment that does not follow on the one before it in its message",
     "the peer's version: a correct stack never does this over TCP; a capture shows which segment is missing",
     "the peer's version: a correct stack never does this over TCP; a capture shows which segment is missing"},
    {Layer::kDdp, 2, 0x05, -1, "DDP-7.2-12",
     "a Send that is longer than the Receive it met: the two ends disagree on the inline threshold",
     "a smaller ClientConfig::inline_threshold: 1024 bytes are taken by every RPC-over-RDMA peer, and by one without "
     "private data no more",
     "a larger ClientConfig::inline_threshold here; 1024 bytes count until the peer's private data says more"},
    {Layer::kDdp, 2, 0x06, -1, "DDP-7.2-13",
     "a segment of another version of DDP: a peer of the RDMA Consortium's drafts has version 0",
     "SoftConfig::mpa_revision 0, with which both generations are served",
     "SoftConfig::mpa_revision 0, with which both generations are served"},
    {Layer::kDdp, 3, -1, -1, "DDP-7.2-14", "a code that no end may send over MPA",
     "the peer's version, or a Terminate whose bytes are in another order than the RFC's", "report it: this is a bug"},

    // ---- MPA
    {Layer::kLlp, 0, 0x01, -1, "MPA-8-03",
     "the TCP connection was reset or ended: the other program died, or a firewall or the network cut it",
     "whether the peer still runs; its log", "whether the peer still runs; its log"},
    {Layer::kLlp, 0, 0x02, -1, "MPA-8-04",
     "bytes were changed on their way where TCP's checksum does not notice (a faulty adapter, switch or offload), or "
     "memory was written while it was being sent; Linux siw also says it of a good FPDU whose CRC came in two pieces, "
     "and may send a wrong CRC behind good bytes while its socket is full",
     "if the peer is siw, to connect and do it again, or SoftConfig::crc false; leave memory that is being sent alone "
     "until its completion; else switch off checksum and segmentation offload "
     "(ethtool -K DEV tso off gso off gro off tx off rx off) to find the part that is faulty",
     "if the peer is siw, SoftConfig::crc false, or more room in its sockets (the middle number of net.ipv4.tcp_wmem); "
     "the same transfer with offloads off at both ends (ethtool -K DEV tso off gso off gro off tx off rx off); with "
     "SoftConfig::direct_placement also without it"},
    {Layer::kLlp, 0, 0x03, -1, "MPA-8-05",
     "the ends disagree about Markers: one puts them where the other does not look for them",
     "without SoftConfig::markers", "without SoftConfig::markers"},
    {Layer::kLlp, 0, 0x04, -1, "MPA-8-08", "a start-up frame that the other end cannot take",
     "SoftConfig::mpa_revision 1; less private data: Linux siw and Chelsio take 256 bytes with the four of revision 2 "
     "(SoftConfig::peer siw)",
     "the program that listens on that port, and its version"},
    {Layer::kLlp, 0, 0x05, -1, "MPA2-9.3-02", "a failure at the end that sent it while the connection was set up",
     "the peer's log (dmesg where its kernel does the RDMA), then connect again",
     "the log lines before this one: no memory, or no descriptors"},
    {Layer::kLlp, 0, 0x06, -1, "MPA2-9.1-13",
     "one end wants to keep more RDMA Reads open than the other can serve: the responder's ORD is above the "
     "initiator's IRD",
     "a smaller SoftConfig::ord here: Linux siw serves 128, Chelsio 32",
     "a larger SoftConfig::ird here, or a smaller ORD at the peer"},
    {Layer::kLlp, 0, 0x07, -1, "MPA2-9.2-10",
     "no ready-to-receive message that both ends can do: Linux siw knows write and read, Chelsio read alone, and "
     "either can want none",
     "SoftConfig::rtr write, else none, at the end that connects; if the peer is a Chelsio or Intel RNIC, "
     "SoftConfig::peer "
     "cxgb4 or irdma",
     "SoftConfig::rtr write, else none; if the peer is a Chelsio or Intel RNIC, SoftConfig::peer cxgb4 or irdma"},
};

bool is_registered(const Terminate& t) {
  return std::ranges::any_of(terminate_rows(), [&](const TerminateRow& row) {
    return row.layer == t.layer && row.etype == t.etype && (row.any_code || row.code == t.code);
  });
}

// The second reading of control octets without headers. Both orders have to be registered.
std::optional<Terminate> swapped(const TerminateMessage& m) {
  if (m.segment_len || m.ddp_header_len != 0 || m.has_rdma_header) return std::nullopt;
  const Terminate other{static_cast<Layer>(m.what.etype), static_cast<std::uint8_t>(m.what.layer), m.what.code};
  if (other == m.what || !is_registered(other)) return std::nullopt;
  return other;
}

std::optional<std::uint32_t> refused_qn(const TerminateMessage& m) {
  const auto segment = ddp::parse_segment_wire(m.ddp());
  const auto* header = segment ? std::get_if<ddp::UntaggedHeader>(&segment->header) : nullptr;
  if (header == nullptr) return std::nullopt;
  return header->qn;
}

// Rows for one queue stand before rows for any queue.
const DiagnosisRow* find_row(const Terminate& t, std::optional<std::uint32_t> qn) {
  for (const DiagnosisRow& row : kDiagnosisRows) {
    if (row.layer != t.layer || row.etype != t.etype || (row.code >= 0 && row.code != t.code)) continue;
    if (row.qn < 0 || (qn && *qn == static_cast<std::uint32_t>(row.qn))) return &row;
  }
  return nullptr;
}

std::string_view opcode_name(std::uint8_t rsvd_ulp) {
  switch (static_cast<Opcode>(parse_control(rsvd_ulp).opcode)) {
    case Opcode::kWrite: return "an RDMA Write";
    case Opcode::kReadRequest: return "a Read Request";
    case Opcode::kReadResponse: return "a Read Response";
    case Opcode::kSend: return "a Send";
    case Opcode::kSendInvalidate: return "a Send with Invalidate";
    case Opcode::kSendSe: return "a Send with Solicited Event";
    case Opcode::kSendSeInvalidate: return "a Send with Solicited Event and Invalidate";
    case Opcode::kTerminate: return "a Terminate";
    case Opcode::kImmediate: return "Immediate Data";
    case Opcode::kImmediateSe: return "Immediate Data with Solicited Event";
    case Opcode::kAtomicRequest: return "an Atomic Request";
    case Opcode::kAtomicResponse: return "an Atomic Response";
  }
  return "a message of an unknown opcode";
}

// M gives the length of the refused segment with its headers; siw counts the payload only.
std::string length_of(const TerminateMessage& m) {
  if (!m.segment_len) return {};
  return fmt::format(", {} bytes{}", *m.segment_len, m.siw ? " of payload" : " with its header");
}

std::string describe_read(const TerminateMessage& m) {
  const auto read = m.has_rdma_header ? parse_read_request_header(m.rdma_header) : std::nullopt;
  if (!read) return {};
  return fmt::format("; it reads {} bytes from STag {:#010x} TO {:#x} into STag {:#010x} TO {:#x}", read->size,
                     read->src_stag.value, read->src_to, read->sink_stag.value, read->sink_to);
}

std::string describe_headers(const TerminateMessage& m) {
  const auto segment = ddp::parse_segment_wire(m.ddp());
  if (!segment) return {};
  if (const auto* tagged = std::get_if<ddp::TaggedHeader>(&segment->header)) {
    return fmt::format("{}: STag {:#010x} TO {:#x}{}", opcode_name(tagged->rsvd_ulp), tagged->stag.value, tagged->to,
                       length_of(m));
  }
  const auto& header = std::get<ddp::UntaggedHeader>(segment->header);
  const auto opcode = static_cast<Opcode>(parse_control(header.rsvd_ulp).opcode);
  std::string text = fmt::format("{}: queue {}", opcode_name(header.rsvd_ulp), header.qn);
  // siw reconstructs the header of a Read that it fails to answer, with a wrong MSN (PEER-H-20).
  if (!m.siw || header.qn != kReadRequestQn) text += fmt::format(" MSN {} MO {}", header.msn.value, header.mo);
  if (invalidates(opcode)) text += fmt::format(", to invalidate STag {:#010x}", header.rsvd_ulp_8_39);
  return text + length_of(m) + describe_read(m);
}

// The readings of one Terminate: the likely one, and a second one if Linux siw's order of the octets is possible.
struct Readings {
  Terminate first;
  std::optional<Terminate> second;
  bool first_is_siws = false;
};

Readings readings_of(const TerminateMessage& message, Course course) {
  if (course != Course::kReceived) return {message.what, std::nullopt};
  if (message.siw) return {*message.siw, message.what, true};
  const std::optional<Terminate> other = swapped(message);
  if (other && !is_registered(message.what)) return {*other, message.what, true};
  return {message.what, other};
}

std::string_view course_words(Course course) {
  switch (course) {
    case Course::kReceived: return "received a Terminate";
    case Course::kSent: return "sent a Terminate";
    case Course::kTooLate: return "too late for a Terminate";
    case Course::kTooEarly: return "too early for a Terminate";
  }
  return "a Terminate";
}

}  // namespace

std::span<const DiagnosisRow> diagnosis_rows() {
  return kDiagnosisRows;
}

Diagnosis diagnose(const TerminateMessage& message, Course course) {
  const Readings readings = readings_of(message, course);
  const auto advice_of = [&](const DiagnosisRow& row) {
    return row.*(course == Course::kReceived ? &DiagnosisRow::if_received : &DiagnosisRow::if_sent);
  };
  Diagnosis d;
  d.what = fmt::format("{}: {}", course_words(course), describe(readings.first));
  d.where = describe_headers(message);
  if (const DiagnosisRow* row = find_row(readings.first, refused_qn(message))) {
    d.requirements = row->requirement;
    d.cause = row->cause;
    d.advice = advice_of(*row);
  } else {
    d.cause = "a code that no RFC has, or a Terminate whose bytes are in an order that is not known";
    d.advice = "the peer's log and version";
  }
  if (!readings.second) return d;
  if (readings.first_is_siws) {
    d.told = fmt::format("read as Linux siw writes it; byte by byte it says {}", describe(*readings.second));
    return d;
  }
  d.told = fmt::format("which from Linux siw would mean {}", describe(*readings.second));
  if (const DiagnosisRow* row = find_row(*readings.second, std::nullopt)) {
    d.cause += fmt::format("; where the peer is Linux siw: {}", row->cause);
    d.advice += fmt::format("; where the peer is Linux siw: {}", advice_of(*row));
  }
  return d;
}

std::string hints(const Diagnosis& d) {
  std::string text;
  if (!d.cause.empty()) text += fmt::format("Likely cause: {}.", d.cause);
  if (!d.advice.empty()) text += fmt::format("{}Try: {}", text.empty() ? "" : " ", d.advice);
  return text;
}

std::string one_line(const Diagnosis& d) {
  std::string text = d.what;
  if (!d.told.empty()) text += fmt::format("; {}", d.told);
  if (!d.where.empty()) text += fmt::format(", for {}", d.where);
  if (!d.requirements.empty()) text += fmt::format(" [{}]", d.requirements);
  const std::string rest = hints(d);
  return rest.empty() ? text : fmt::format("{}. {}", text, rest);
}

std::string to_lines(const Diagnosis& d) {
  std::string text = d.what;
  const auto add = [&text](std::string_view about, std::string_view part) {
    if (!part.empty()) text += fmt::format("\n  {:<14}{}", about, part);
  };
  add("reading:", d.told);
  add("refused:", d.where);
  add("requirement:", d.requirements);
  add("likely cause:", d.cause);
  add("try:", d.advice);
  return text;
}

}  // namespace weft::rdmap
