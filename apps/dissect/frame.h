#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/dissect/append.h"
#include "apps/dissect/effect.h"
#include "apps/dissect/tcp_half.h"
#include "base/bytes.h"

// The facts that the dissector tells of a capture. Printers, the summary, the ladder and the checks are made of this
// alone.
namespace weft::apps::dissect {

// Side: an end of a connection. The client sent the MPA Request.
enum class Side : std::uint8_t { kClient, kServer };
constexpr Side other(Side side) {
  return side == Side::kClient ? Side::kServer : Side::kClient;
}
constexpr std::string_view side_str(Side side) {
  return side == Side::kClient ? "client" : "server";
}

// Source: the octets that a field's place counts in.
enum class Source : std::uint8_t {
  kWire,     // Frame::wire
  kUlpdu,    // Frame::ulpdu
  kMessage,  // Frame::message
};

// Field: one value and its place.
struct Field {
  std::string_view name;
  std::string value;
  std::uint32_t at = 0;
  std::uint32_t len = 0;
  Source source = Source::kWire;
  std::optional<std::uint64_t> number = {};  // the one that value begins with, if it is a number
};

enum class LayerKind : std::uint8_t { kTcp, kMpa, kDdp, kRdmap, kRpcRdma, kRpc };
std::string_view layer_str(LayerKind kind);

// Layer: a frame's part that one protocol understands. An empty line: the protocol has nothing to say unless somebody
// wants every field.
struct Layer {
  LayerKind kind = LayerKind::kMpa;
  Line line = {};
  std::vector<Field> fields = {};  // only if Options::fields
};

// Layers: the layers of a frame, the lowest first. It keeps the memory of their text for the next frame.
class Layers {
 public:
  // add appends a layer. References to other layers end.
  Layer& add(LayerKind kind) {
    if (size_ == layers_.size()) layers_.emplace_back();
    Layer& layer = layers_[size_++];
    layer.kind = kind;
    layer.line.clear();
    layer.fields.clear();
    return layer;
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Layer& operator[](std::size_t i) { return layers_[i]; }
  const Layer& operator[](std::size_t i) const { return layers_[i]; }
  const Layer& front() const { return layers_[0]; }
  const Layer* begin() const { return layers_.data(); }
  const Layer* end() const { return layers_.data() + size_; }

 private:
  std::vector<Layer> layers_;
  std::size_t size_ = 0;
};

// Place: octets of a frame.
struct Place {
  Source source = Source::kWire;
  std::uint32_t at = 0;
  std::uint32_t len = 0;  // 0: the whole frame
};

// EarlierFrame: a frame by its numbers.
struct EarlierFrame {
  std::uint64_t frame = 0, packet = 0;
};

// Verdict: what the octets say of an accusation, which a Terminate or an error of RPC-over-RDMA is.
enum class Verdict : std::uint8_t {
  kConfirmed,  // the accused side has made the mistake
  kRefuted,    // it has not
  kUnseen,     // a capture does not show it, or lacks octets
};
std::string_view verdict_str(Verdict verdict);

// Finding: a rule that the frame breaks, or that the other side breaks as a Terminate says.
struct Finding {
  std::string_view requirement;               // a row of tests/conformance/tables
  std::string what;                           // what the frame does
  Effect effect = {};                         // what a receiver does with it
  Place place = {};                           // the octets that break the rule
  bool is_blame = false;                      // the frame is a Terminate, and the other side breaks the rule
  std::optional<EarlierFrame> confirms = {};  // a blame: the frame that has a finding for it already
  std::optional<Verdict> verdict = {};        // of a Terminate's accusation
};

// RdmaFact: the RDMAP message that a frame completes.
struct RdmaFact {
  std::string_view operation;
  std::uint64_t octets = 0;  // of its payload
  std::size_t num_segments = 1;
};

// Use: what the memory that a Call offers is for.
enum class Use : std::uint8_t { kCall, kArgument, kResult, kReply };

// ServedCall: the Call whose memory an RDMA operation reads or writes.
struct ServedCall {
  std::uint32_t xid = 0;
  Use use = Use::kArgument;
  std::uint32_t index = 0;             // kArgument: the Position. kResult: the number of the Write chunk, from 1
  std::optional<Timestamp> took = {};  // an RDMA Write: since its first octet. A Read Response: since its Request
};

// RpcFact: the RPC message that a frame carries or completes.
struct RpcFact {
  bool is_reply = false;
  std::uint32_t xid = 0;
  std::string_view procedure = {};        // empty: unknown. Valid during the call that hands over the frame
  std::optional<Timestamp> latency = {};  // of a Reply whose Call is in the capture
  bool failed = false;                    // a Reply that is not SUCCESS, or whose status is not 0
  bool truncated = false;                 // a Reply without failure whose results end too early
};

// Facts: what counts, besides words.
struct Facts {
  std::optional<RdmaFact> rdma;
  std::optional<RpcFact> rpc;
  std::optional<std::uint32_t> xid;     // of an RPC-over-RDMA header, or of the Call that an RDMA operation serves
  std::optional<std::uint32_t> credit;  // of an RPC-over-RDMA header; 2-wg07: messages that its sender still takes
  std::uint32_t header_len = 0;         // octets of an RPC-over-RDMA header
  std::uint32_t lists_at = 0;           // where its chunk lists begin
  bool is_rpcrdma_error = false;
  std::optional<ServedCall> served;  // of an RDMA operation
  bool is_startup = false;
  bool is_terminate = false;
  bool names_unsent = false;       // the message that a Terminate names has not been sent
  std::string misnamed;            // what of the named message differs from the message that was sent
  bool names_asked = false;        // the named RDMA Read Response is as the sender of the Terminate asked for it
  std::optional<Verdict> verdict;  // of the accusation in a Terminate, or in an error of RPC-over-RDMA
};

// Frame: an MPA frame with all that it carries. If it completes a message of several frames, the upper layers speak of
// the message.
struct Frame {
  std::uint64_t number = 0;  // from 1, over the whole capture
  Arrival arrival;
  std::uint32_t connection = 0;
  Side from = Side::kClient;
  ConstBytes wire;           // views are valid during the call that hands over the frame
  std::size_t wire_len = 0;  // octets that it had; more than wire.size() if the capture cut it
  ConstBytes ulpdu;          // without Markers; of an FPDU
  ConstBytes message;        // the untagged message that the frame completes
  Layers layers;
  std::vector<Finding> findings;
  Facts facts;

  void find(std::string_view requirement, std::string what, Effect effect) {
    findings.push_back({requirement, std::move(what), std::move(effect)});
  }
};

// octets_at returns the octets of a place that the capture has.
inline ConstBytes octets_at(const Frame& frame, const Place& place) {
  const ConstBytes source = place.source == Source::kWire    ? frame.wire
                            : place.source == Source::kUlpdu ? frame.ulpdu
                                                             : frame.message;
  if (place.at > source.size()) return {};
  return source.subspan(place.at, std::min<std::size_t>(place.len, source.size() - place.at));
}

// culprit returns the side that breaks the rule.
inline Side culprit(const Frame& frame, const Finding& finding) {
  return finding.is_blame ? other(frame.from) : frame.from;
}

// num_violations counts the findings of a frame, without those that an earlier frame has.
inline std::uint64_t num_violations(const Frame& frame) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(frame.findings, [](const Finding& finding) { return !finding.confirms; }));
}

// Connection: the facts of a connection that are known when its first frame comes.
struct Connection {
  std::uint32_t id = 0;                  // from 1
  std::string client = {}, server = {};  // addresses
  bool saw_start = false;
};

// TcpCounters: of what the client and the server sent.
struct TcpCounters {
  TcpHalf::Counters client, server;
};

// Comment: what the capture says of a packet of a connection.
struct Comment {
  static constexpr std::size_t kMaxText = 4096;

  std::uint32_t connection = 0;
  Arrival arrival;
  Side from = Side::kClient;
  std::string text = {};  // printable; at most kMaxText octets, and the word that it is cut
};

// Unjudged: from a packet on, a part of a connection is not held against the rules.
struct Unjudged {
  std::uint32_t connection = 0;
  std::uint64_t packet = 0;
  std::string_view what = {};
  std::string_view why = {};
};

// CaptureEnd: the facts of the whole capture.
struct CaptureEnd {
  std::uint64_t packets = 0;
  std::uint64_t tcp_segments = 0;
  std::uint64_t connections = 0;      // that carry iWARP
  std::uint64_t unread_packets = 0;   // of link layers that are not known
  std::uint64_t fragments = 0;        // TCP segments whose further IP fragments are not read
  std::uint64_t dropped_packets = 0;  // as the capture says itself
  std::uint64_t given_up = 0;         // of the connections: more were open than are followed at once
  std::string error = {};             // why not all of it was read; empty: all was
};

// Listener hears of everything in the order of the capture.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_connection(const Connection& connection) = 0;
  virtual void on_frame(const Frame& frame) = 0;
  // A connection ends, or the capture does.
  virtual void on_connection_end(std::uint32_t connection, const TcpCounters& counters) = 0;
  // Behind the frames that the packet completes.
  virtual void on_comment(const Comment&) {}
  // At most once for each connection and Unjudged::what.
  virtual void on_unjudged(const Unjudged&) {}
  // Nothing follows.
  virtual void on_capture_end(const CaptureEnd&) {}
};

struct Options {
  bool fields = false;  // Layer::fields are wanted
};

}  // namespace weft::apps::dissect
