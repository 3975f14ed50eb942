#include "mpa/direct_fpdu.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "requirements/violates.h"

namespace weft::mpa {

namespace {

// Copies `from` into views, from octet `offset` on.
void copy_to(std::span<const MutBytes> views, std::size_t offset, ConstBytes from) {
  for (MutBytes view : views) {
    if (offset >= view.size()) {
      offset -= view.size();
      continue;
    }
    const std::size_t len = std::min(view.size() - offset, from.size());
    if (len != 0) std::memcpy(view.data() + offset, from.data(), len);
    from = from.subspan(len);
    offset = 0;
    if (from.empty()) return;
  }
  assert(from.empty());
}

}  // namespace

DirectFpdu::DirectFpdu(const PartialFpdu& fpdu, std::size_t header_len, bool crc, Staging& staging,
                       std::span<const MutBytes> payload)
    : layout_(fpdu.layout),
      bare_len_(fpdu_len(fpdu.ulpdu_len)),
      payload_begin_(kUlpduLengthLen + header_len),
      payload_end_(layout_.stream_len(kUlpduLengthLen + fpdu.ulpdu_len)),
      crc_in_use_(crc),
      markers_(kMarkerLen * layout_.num_before(bare_len_ - 1)) {
  assert(header_len < fpdu.ulpdu_len && fpdu.arrived_ulpdu_len() >= header_len);
  const ConstBytes octets = fpdu.arrived.first(std::min(fpdu.arrived.size(), payload_end_));
  for (std::size_t at = 0; at < octets.size();) {
    const auto run = layout_.run_at(at);
    const std::size_t len = std::min(run.len, octets.size() - at);
    const std::size_t bare = layout_.bare_len(at);
    if (!run.is_marker && bare + len > payload_begin_) {
      const std::size_t header = bare < payload_begin_ ? payload_begin_ - bare : 0;
      copy_to(payload, bare + header - payload_begin_, octets.subspan(at + header, len - header));
    }
    at += len;
  }
  keep_markers(octets);
  on_rx(octets);
  staging.consume(octets.size());
}

std::size_t DirectFpdu::payload_received() const {
  const std::size_t bare = layout_.bare_len(received_);
  return bare > payload_begin_ ? bare - payload_begin_ : 0;
}

MutBytes DirectFpdu::marker_slot(const MarkerLayout::Run& run) {
  return MutBytes(markers_).subspan(run.marker * kMarkerLen + run.within, run.len);
}

// Copies the Markers among octets. octets begin at received_.
void DirectFpdu::keep_markers(ConstBytes octets) {
  for (std::size_t at = 0; at < octets.size();) {
    const auto run = layout_.run_at(received_ + at);
    const std::size_t len = std::min(run.len, octets.size() - at);
    if (run.is_marker) std::memcpy(marker_slot(run).data(), octets.data() + at, len);
    at += len;
  }
}

void DirectFpdu::append_buffers(std::span<const MutBytes> rest, std::vector<MutBytes>& out) {
  std::size_t at = received_;
  for (MutBytes view : rest) {
    while (!view.empty()) {
      auto run = layout_.run_at(at);
      if (run.is_marker) {
        out.push_back(marker_slot(run));
        at += run.len;
        continue;
      }
      const std::size_t len = std::min(run.len, view.size());
      out.push_back(view.first(len));
      view = view.subspan(len);
      at += len;
    }
  }
  assert(at == payload_end_);
}

void DirectFpdu::on_rx(ConstBytes octets) {
  assert(octets.size() <= payload_end_ - received_);
  if (crc_in_use_) crc_.update(octets);
  received_ += octets.size();
}

std::variant<NeedMore, DirectFpdu::Verified, Error> DirectFpdu::finish(Staging& staging) {
  assert(payload_done());
  const std::size_t len = layout_.stream_len(bare_len_);
  const std::size_t missing = len - received_;
  const ConstBytes pending = staging.pending();
  if (pending.size() < missing) return NeedMore{missing - pending.size()};
  const ConstBytes covered = pending.first(missing - kCrcLen);
  if (crc_in_use_) {
    crc_.update(covered);
    if (violates("MPA-4.4-20", crc_.value() != parse_crc(pending.subspan(covered.size()).first<kCrcLen>())))
      return Error::kCrc;
  }
  keep_markers(covered);
  for (std::size_t i = 0; i * kMarkerLen < markers_.size(); ++i) {
    if (!marker_fits(layout_, i, ConstBytes(markers_).subspan(i * kMarkerLen).first<kMarkerLen>()))
      return Error::kMarker;
  }
  staging.consume(missing);
  return Verified{len};
}

}  // namespace weft::mpa
