#include "apps/dissect/sent_segments.h"

#include <fmt/format.h>

#include <variant>

namespace weft::apps::dissect {

namespace {

constexpr std::uint64_t kMoMask = 0xffffffff;

std::string place_str(const SentSegments::Place& place) {
  if (place.is_tagged) return fmt::format("TO {:#x} of STag {:#010x}", place.offset, place.target);
  return fmt::format("MO {} of MSN {} in queue {}", place.offset & kMoMask, place.offset >> 32, place.target);
}

// Receivers differ on whether DDP Segment Length counts the header of DDP.
bool suits_length(const SentSegments::Sent& sent, std::size_t len) {
  return sent.len == len || sent.payload_len == len;
}

// A responder may fail after the first octets of the Response. Its Terminate has a Request for the other octets then
// (RFC 5040 section 4.8).
bool is_rest_of(const rdmap::ReadRequestHeader& named, const rdmap::ReadRequestHeader& sent) {
  if (named.size > sent.size) return false;
  const std::uint64_t done = sent.size - named.size;
  return named.sink_stag.value == sent.sink_stag.value && named.src_stag.value == sent.src_stag.value &&
         named.sink_to == sent.sink_to + done && named.src_to == sent.src_to + done;
}

}  // namespace

void SentSegments::on_sent(const Sent& sent, const std::optional<rdmap::ReadRequestHeader>& read) {
  if (!rings_) rings_ = std::make_unique<Rings>();
  auto& [segments, reads] = *rings_;
  const bool has_room = count_.has_room(kRoomOfOthers);
  if (read && has_room) {
    if (reads.size() == kMax) reads.pop_front();
    reads.push_back({static_cast<std::uint32_t>(sent.place.offset >> 32), *read});
  }
  if (segments.size() == kMax || (!has_room && !segments.empty())) {
    segments.pop_front();
    knows_all_ = false;
  }
  if (has_room) segments.push_back(sent);
  knows_all_ &= has_room;
  count_.set((segments.size() + kSegmentsOfEntry - 1) / kSegmentsOfEntry);
}

const rdmap::ReadRequestHeader* SentSegments::read_of(const Place& place) const {
  if (place.is_tagged || place.target != rdmap::kReadRequestQn || !rings_) return nullptr;
  const auto& reads = rings_->reads;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (reads[i].msn == place.offset >> 32) return &reads[i].header;
  }
  return nullptr;
}

void SentSegments::note_asked() {
  if (rings_ && !rings_->sent.empty()) rings_->sent[rings_->sent.size() - 1].is_asked = true;
}

SentSegments::Weighed SentSegments::weigh(const ddp::Segment& named, const rdmap::TerminateMessage& message) const {
  const Place place = std::visit([](const auto& header) { return place_of(header); }, named.header);
  bool has_place = false, suits_len = !message.segment_len, suits_read = !message.has_rdma_header, is_asked = true;
  const auto read = rdmap::parse_read_request_header(message.rdma_header);
  const rdmap::ReadRequestHeader* const sent_read = read_of(place);
  for (std::size_t i = 0; rings_ && i < rings_->sent.size(); ++i) {
    const Sent& sent = rings_->sent[i];
    if (sent.place != place) continue;
    has_place = true;
    suits_len |= message.segment_len && suits_length(sent, *message.segment_len);
    suits_read |= sent_read == nullptr || (read && is_rest_of(*read, *sent_read));
    is_asked &= sent.is_asked;
  }
  const bool is_certain = knows_all_ || (has_place && !place.is_tagged);
  if (!is_certain) return {.unsent = {}, .is_asked = has_place && is_asked};
  if (!has_place) return {.unsent = place_str(place)};
  if (!suits_len) return {.unsent = fmt::format("a segment of {} bytes at {}", *message.segment_len, place_str(place))};
  if (!suits_read) return {.unsent = fmt::format("another RDMA Read Request than MSN {} has", place.offset >> 32)};
  return {.unsent = {}, .is_asked = is_asked};
}

}  // namespace weft::apps::dissect
