#include "apps/dissect/mpa_layer.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "apps/dissect/effect.h"
#include "apps/dissect/layer_writer.h"
#include "ddp/segment.h"
#include "mpa/crc32c.h"
#include "mpa/fpdu.h"
#include "mpa/fpdu_reader.h"
#include "rdmap/terminate.h"
#include "rpcrdma/private_data.h"

namespace weft::apps::dissect {

namespace {

constexpr std::size_t kFlagsAt = 16, kRevAt = 17, kPdLengthAt = 18;

std::string rtr_kinds(const mpa::EnhancedWords& words) {
  std::string kinds;
  const auto add = [&kinds](bool offered, std::string_view name) {
    if (offered) kinds += (kinds.empty() ? "" : ", ") + std::string(name);
  };
  add(words.b, "Send");
  add(words.c, "RDMA Write");
  add(words.d, "RDMA Read");
  return kinds.empty() ? "none" : kinds;
}

void tell_enhanced_words(const mpa::EnhancedWords& words, LayerWriter& layer) {
  const auto count = [](std::uint16_t value) {
    return value == mpa::EnhancedWords::kManual ? std::string("manual") : std::to_string(value);
  };
  layer.line(FMT_COMPILE(", IRD {}, ORD {}"), count(words.ird), count(words.ord));
  if (words.a) layer.line(FMT_COMPILE(", peer-to-peer, RTR {}"), rtr_kinds(words));
  layer.field("A (peer-to-peer)", mpa::kStartupHeaderLen, 1, "{}", int{words.a});
  layer.field("B (RTR by Send)", mpa::kStartupHeaderLen, 1, "{}", int{words.b});
  const auto tell_count = [&](std::string_view name, std::size_t at, std::uint16_t value) {
    if (value == mpa::EnhancedWords::kManual) return layer.field(name, at, 2, "manual");
    layer.field(name, at, 2, "{}", value);
  };
  tell_count("IRD", mpa::kStartupHeaderLen, words.ird);
  layer.field("C (RTR by RDMA Write)", mpa::kStartupHeaderLen + 2, 1, "{}", int{words.c});
  layer.field("D (RTR by RDMA Read)", mpa::kStartupHeaderLen + 2, 1, "{}", int{words.d});
  tell_count("ORD", mpa::kStartupHeaderLen + 2, words.ord);
}

void tell_private_data(ConstBytes octets, std::size_t at, LayerWriter& layer) {
  if (octets.empty()) return;
  layer.line(FMT_COMPILE(", {} bytes of private data"), octets.size());
  layer.field("private data", at, octets.size(), "{} bytes", octets.size());
  const auto found = find_rpcrdma_private_data(octets);
  if (!found) return;
  at += *found;
  octets = octets.subspan(*found);
  const rpcrdma::PrivateData data = rpcrdma::parse_private_data(octets);
  layer.line(FMT_COMPILE(" (RPC-over-RDMA: sends {}, receives {}{})"), data.send_size, data.receive_size,
             data.remote_invalidate ? ", remote invalidation" : "");
  layer.field("RFC 8797 version", at + 4, 1, "{}", octets[4]);
  layer.field("RFC 8797 R (remote invalidation)", at + 5, 1, "{}", int{data.remote_invalidate});
  layer.field("RFC 8797 send size", at + 6, 1, "{}", data.send_size);
  layer.field("RFC 8797 receive size", at + 7, 1, "{}", data.receive_size);
}

Effect ends(mpa::Error error) {
  return terminated(rdmap::to_terminate(error));
}

std::string_view requirement_of(mpa::StartupFault fault) {
  switch (fault) {
    case mpa::StartupFault::kPrivateDataLen: return "MPA-7.1.1-22";
    case mpa::StartupFault::kNoWords: return "MPA2-6-11";
    case mpa::StartupFault::kForeign: return "MPA-7.1.2-15";
    default: return "MPA-7.1.2-04";
  }
}

void tell_markers(const Fpdu& fpdu, LayerWriter& layer) {
  const std::size_t num = fpdu.markers.num_before(mpa::fpdu_len(fpdu.ulpdu_len) - 1);
  for (std::size_t i = 0; i < num && fpdu.markers.marker_offset(i) + mpa::kMarkerLen <= fpdu.wire.size(); ++i) {
    const std::size_t at = fpdu.markers.marker_offset(i);
    layer.field("Marker", at, mpa::kMarkerLen, "the frame began {} bytes before",
                mpa::parse_fpduptr(fpdu.wire.subspan(at).first<mpa::kMarkerLen>()));
  }
}

std::string_view crc_str(CrcVerdict crc) {
  switch (crc) {
    case CrcVerdict::kGood: return "good";
    case CrcVerdict::kBad: return "BAD";
    case CrcVerdict::kUnused: return "not in use";
    case CrcVerdict::kUnknown: break;
  }
  return "not checked";
}

void tell_trailer(const Fpdu& fpdu, LayerWriter& layer) {
  const std::size_t crc_at = fpdu.wire_len - mpa::kCrcLen;
  const std::size_t pad_len = mpa::fpdu_len(fpdu.ulpdu_len) - mpa::kUlpduLengthLen - fpdu.ulpdu_len - mpa::kCrcLen;
  // A Marker can stand inside the PAD, or between PAD and CRC.
  const bool has_markers = fpdu.wire_len != mpa::fpdu_len(fpdu.ulpdu_len);
  if (pad_len != 0 && !has_markers) layer.field("PAD", crc_at - pad_len, pad_len, "{} bytes", pad_len);
  layer.field("CRC", crc_at, mpa::kCrcLen, "{}", crc_str(fpdu.crc));
}

Place wire_place(std::size_t at, std::size_t len) {
  return {Source::kWire, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(len)};
}

// The first Marker that `is_wrong` accepts. is_wrong(i, octets): i counts the Markers of the FPDU.
template <typename Predicate>
Place place_of_marker(const Fpdu& fpdu, Predicate is_wrong) {
  const std::size_t num = fpdu.markers.num_before(mpa::fpdu_len(fpdu.ulpdu_len) - 1);
  for (std::size_t i = 0; i < num && fpdu.markers.marker_offset(i) + mpa::kMarkerLen <= fpdu.wire.size(); ++i) {
    const std::size_t at = fpdu.markers.marker_offset(i);
    if (is_wrong(i, fpdu.wire.subspan(at).first<mpa::kMarkerLen>())) return wire_place(at, mpa::kMarkerLen);
  }
  return {};
}

Place place_of_bad_marker(const Fpdu& fpdu) {
  return place_of_marker(fpdu, [&](std::size_t i, auto marker) { return !mpa::marker_fits(fpdu.markers, i, marker); });
}

// The PAD where no Marker stands in it.
void judge_pad(const Fpdu& fpdu, Frame& frame) {
  const std::size_t bare_len = mpa::fpdu_len(fpdu.ulpdu_len);
  const std::size_t pad_len = bare_len - mpa::kUlpduLengthLen - fpdu.ulpdu_len - mpa::kCrcLen;
  if (pad_len == 0 || fpdu.cut || fpdu.wire_len != bare_len) return;
  const std::size_t pad_at = bare_len - mpa::kCrcLen - pad_len;
  const ConstBytes pad = fpdu.wire.subspan(pad_at, pad_len);
  if (std::ranges::all_of(pad, [](std::uint8_t octet) { return octet == 0; })) return;
  frame.findings.push_back(
      {"MPA-4.1-03", "PAD is not zero", "the receiver does not look at it", wire_place(pad_at, pad_len)});
}

// Bits that are sent as zero.
void judge_marker_bits(const Fpdu& fpdu, Frame& frame) {
  constexpr std::string_view kEffect = "the receiver does not look at them";
  if (!fpdu.has_reserved_half && !fpdu.has_low_bits) return;
  const auto place = [&fpdu](auto is_wrong) {
    return place_of_marker(fpdu, [&](std::size_t, auto marker) { return is_wrong(marker); });
  };
  if (fpdu.has_reserved_half) {
    frame.findings.push_back({"MPA-4.2-02", "the Reserved half of a Marker is not zero", kEffect,
                              place([](auto marker) { return marker[0] != 0 || marker[1] != 0; })});
  }
  if (fpdu.has_low_bits) {
    frame.findings.push_back({"MPA-4.2-05", "the two lowest bits of FPDUPTR are not zero", kEffect,
                              place([](auto marker) { return (mpa::parse_fpduptr(marker) & 3) != 0; })});
  }
}

}  // namespace

void tell_startup_frame(const mpa::StartupFrame& startup, const Options& options, Frame& frame) {
  LayerWriter layer(frame, LayerKind::kMpa, options);
  const bool is_reply = startup.kind == mpa::FrameKind::kReply;
  layer.line(FMT_COMPILE("MPA {}, revision {}, CRC {}, Markers {}"),
             is_reply ? (startup.r ? "Reply: REJECTED" : "Reply") : "Request", startup.rev, startup.c ? "on" : "off",
             startup.m ? "wanted" : "off");
  layer.field("Key", 0, 16, "{}", is_reply ? "MPA ID Rep Frame" : "MPA ID Req Frame");
  layer.field("M (Markers wanted)", kFlagsAt, 1, "{}", int{startup.m});
  layer.field("C (CRC wanted)", kFlagsAt, 1, "{}", int{startup.c});
  layer.field("R (rejected)", kFlagsAt, 1, "{}", int{startup.r});
  layer.field("S (enhanced)", kFlagsAt, 1, "{}", int{startup.s});
  layer.field("Res", kFlagsAt, 1, "{:#x}", startup.res);
  layer.field("Rev", kRevAt, 1, "{}", startup.rev);
  layer.field("PD_Length", kPdLengthAt, 2, "{}", startup.private_data.size());
  const auto words = mpa::parse_enhanced_words(startup);
  if (words) tell_enhanced_words(*words, layer);
  tell_private_data(mpa::ulp_private_data(startup), mpa::kStartupHeaderLen + (words ? mpa::kEnhancedWordsLen : 0),
                    layer);
}

void tell_bad_startup_frame(const mpa::BadFrame& bad, const Options& options, Frame& frame) {
  LayerWriter layer(frame, LayerKind::kMpa, options);
  layer.line(FMT_COMPILE("a broken MPA startup frame: {}"), bad.reason);
  frame.findings.push_back(
      {requirement_of(bad.fault), std::string(bad.reason), closes_tcp("the receiver closes TCP without an answer")});
}

// Behind a bad Marker, the field is not where the receiver looks for it. The receiver gives both one code (MPA-A-08).
void tell_empty_ulpdu(bool bad_marker, const Options& options, Frame& frame) {
  LayerWriter(frame, LayerKind::kMpa, options).text(bad_marker ? "BAD MARKER" : "a ULPDU_Length of 0");
  if (bad_marker) {
    frame.find("MPA-8-05", "a Marker of this FPDU does not lead to its ULPDU_Length", ends(mpa::Error::kMarker));
  } else {
    frame.find("MPA-3-09", "a ULPDU has at least one byte", ends(mpa::Error::kMarker));
  }
}

namespace {

// Linux siw sends in a system call and in a thread of its own. If its socket fills up behind the header of an FPDU and
// has room again at once, both count the payload, and the CRC is that of an FPDU with its payload twice.
bool has_payload_twice(const Fpdu& fpdu) {
  const auto segment = ddp::parse_segment_wire(fpdu.ulpdu);
  if (fpdu.cut || fpdu.markers.num_before(fpdu.wire_len) != 0 || !segment) return false;
  const ConstBytes covered = fpdu.wire.first(fpdu.wire_len - mpa::kCrcLen);
  const std::size_t header_len = fpdu.ulpdu_len - segment->payload.size();
  mpa::Crc32c crc;
  crc.update(covered);
  crc.update(covered.subspan(mpa::kUlpduLengthLen + header_len));  // with the PAD
  return crc.value() == mpa::parse_crc(fpdu.wire.last<mpa::kCrcLen>());
}

void find_bad_crc(const Fpdu& fpdu, Frame& frame) {
  std::string what = "the CRC of this FPDU does not fit its bytes";
  const auto field = fpdu.wire.last<mpa::kCrcLen>();
  std::array<std::uint8_t, mpa::kCrcLen> swapped{};
  std::ranges::reverse_copy(field, swapped.begin());
  const bool is_swapped = mpa::parse_crc(swapped) == mpa::crc32c(fpdu.wire.first(fpdu.wire.size() - mpa::kCrcLen));
  if (std::ranges::all_of(field, [](std::uint8_t octet) { return octet == 0; })) {
    what += "; the field is zero, as of a sender without CRCs, though a startup frame wants them (C)";
  } else if (is_swapped) {
    what += "; it fits in the other byte order";
  } else if (has_payload_twice(fpdu)) {
    what += "; it fits if the payload counts twice: Linux siw does so at times while its socket is full";
  }
  frame.findings.push_back(
      {"MPA-4.4-20", std::move(what), ends(mpa::Error::kCrc), wire_place(fpdu.wire_len - mpa::kCrcLen, mpa::kCrcLen)});
}

}  // namespace

namespace {

// RFC 5044 section 7.1.1: the receiver says whether it wants Markers.
void judge_markers_at_all(const Fpdu& fpdu, Frame& frame) {
  if (fpdu.marker_mistake == MarkerMistake::kUnwanted) {
    frame.findings.push_back({"MPA-7.1.1-07", "Markers, though the other side wants none (M is 0 in its startup frame)",
                              ends(mpa::Error::kMarker), wire_place(0, mpa::kMarkerLen)});
  } else if (fpdu.marker_mistake == MarkerMistake::kMissing) {
    frame.findings.push_back({"MPA-7.1.1-08",
                              "no Markers, though the other side wants them (M is 1 in its startup frame)",
                              ends(mpa::Error::kMarker), wire_place(0, mpa::kMarkerLen)});
  }
}

}  // namespace

void tell_damaged(std::uint64_t len, const Options& options, Frame& frame) {
  LayerWriter(frame, LayerKind::kMpa, options).line(FMT_COMPILE("{} bytes that are no FPDU whose CRC fits"), len);
  frame.find("MPA-4.4-20", fmt::format("{} bytes between two FPDUs are none whose CRC fits", len),
             ends(mpa::Error::kCrc));
}

namespace {

void judge_fpdu(const Fpdu& fpdu, Frame& frame) {
  if (fpdu.marker_mistake != MarkerMistake::kNone) judge_markers_at_all(fpdu, frame);
  if (fpdu.crc == CrcVerdict::kBad && !fpdu.follows_bad_crc) find_bad_crc(fpdu, frame);
  if (fpdu.bad_marker) {
    frame.findings.push_back({"MPA-8-05", "a Marker of this FPDU does not lead to its ULPDU_Length",
                              ends(mpa::Error::kMarker), place_of_bad_marker(fpdu)});
  }
  if (fpdu.crc == CrcVerdict::kBad) return;
  judge_pad(fpdu, frame);
  judge_marker_bits(fpdu, frame);
}

}  // namespace

// An FPDU has no line unless it is wrong.
void tell_fpdu(const Fpdu& fpdu, const Options& options, Frame& frame) {
  judge_fpdu(fpdu, frame);
  const bool is_bad = fpdu.crc == CrcVerdict::kBad;
  if (!is_bad && !fpdu.bad_marker && !options.fields) return;
  LayerWriter layer(frame, LayerKind::kMpa, options);
  if (is_bad) layer.text("BAD CRC");
  if (fpdu.bad_marker) layer.text(is_bad ? ", BAD MARKER" : "BAD MARKER");
  if (!layer.wants_fields()) return;
  tell_markers(fpdu, layer);
  layer.field("ULPDU_Length", fpdu.length_at, mpa::kUlpduLengthLen, "{}", fpdu.ulpdu_len);
  if (!fpdu.cut) tell_trailer(fpdu, layer);
  if (fpdu.cut) layer.field("captured", 0, fpdu.wire.size(), "{} of {} bytes", fpdu.wire.size(), fpdu.wire_len);
}

std::optional<std::size_t> find_rpcrdma_private_data(ConstBytes octets) {
  constexpr std::array<std::uint8_t, 4> kIdentifier = {0xf6, 0xab, 0x0e, 0x18};
  const auto found = std::search(octets.begin(), octets.end(), kIdentifier.begin(), kIdentifier.end());
  const auto at = static_cast<std::size_t>(found - octets.begin());
  if (octets.size() - at < rpcrdma::kPrivateDataLen) return std::nullopt;
  return at;
}

MpaHalf::Terms terms_of(const mpa::StartupFrame& from, const mpa::StartupFrame& to) {
  return {.markers = to.m, .crc = from.c || to.c, .is_known = true};
}

// The initiator sets its IRD to the responder's ORD at least (RFC 6581 section 9.1). Revision 1 tells nothing.
RdmapDecoder::Start start_of(const mpa::StartupFrame& own, const mpa::StartupFrame& other) {
  RdmapDecoder::Start start;
  if (own.rev == 0 || other.rev == 0) start.version = 0;
  const bool is_reply = own.kind == mpa::FrameKind::kReply;
  start.is_responder = is_reply;
  const auto words = mpa::parse_enhanced_words(is_reply ? own : other);
  start.is_enhanced = words.has_value();
  const auto asked = is_reply ? std::nullopt : mpa::parse_enhanced_words(own);
  if (words && asked) {
    const bool is_manual = asked->ird == mpa::EnhancedWords::kManual || words->ord == mpa::EnhancedWords::kManual;
    start.may_lack_ird = is_manual || words->ord > asked->ird;
    const bool shares_rtr = (asked->b && words->b) || (asked->c && words->c) || (asked->d && words->d);
    start.may_lack_rtr = asked->a != words->a || (words->a && !shares_rtr);
  }
  if (!is_reply && words && words->a) start.rtr = {.send = words->b, .write = words->c, .read = words->d};
  if (!words || words->ird == mpa::EnhancedWords::kManual || words->ord == mpa::EnhancedWords::kManual) return start;
  start.ird = is_reply ? words->ird : words->ord;
  return start;
}

}  // namespace weft::apps::dissect
