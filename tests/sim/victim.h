#pragma once

// A stream in Full Operation whose peer is the test itself: it feeds ULPDUs and reads the answers.

#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "mpa/fpdu_reader.h"
#include "mpa/fpdu_writer.h"
#include "mpa/startup_frame.h"
#include "mpa/testing/octets_of.h"
#include "rdmap/testing/pair.h"

namespace weft::sim {

using Octets = std::vector<std::uint8_t>;

inline Octets frame_fpdu(ConstBytes ulpdu, bool crc = true) {
  if (ulpdu.empty()) return {0, 0, 0, 0, 0, 0, 0, 0};  // no writer makes this: a ULPDU_Length of 0
  mpa::FpduWriter writer(crc);
  if (!writer.add(ulpdu, {}, true)) return {};
  Octets out;
  for (ConstBytes view : writer.buffers()) out.insert(out.end(), view.begin(), view.end());
  return out;
}

inline std::vector<Octets> deframe(ConstBytes stream, bool crc = true) {
  mpa::Staging staging(stream.size() + 256 * 1024);
  std::copy(stream.begin(), stream.end(), staging.space(stream.size() + 1).begin());
  staging.commit(stream.size());
  mpa::FpduReader reader(crc);
  std::vector<Octets> ulpdus;
  while (true) {
    const auto next = reader.next(staging);
    const auto* ulpdu = std::get_if<mpa::Ulpdu>(&next);
    if (ulpdu == nullptr) return ulpdus;
    ulpdus.push_back(mpa::testing::octets_of(*ulpdu));
  }
}

inline Octets startup_frame(mpa::FrameKind kind, std::uint8_t rev, Octets private_data = {}) {
  mpa::StartupFrame frame;
  frame.kind = kind;
  frame.c = true;
  frame.rev = rev;
  frame.private_data = std::move(private_data);
  Octets out;
  mpa::emit_startup_frame(frame, out);
  return out;
}

// The number of harmless FPDUs that a victim has heard when the test begins. After the first it may speak.
enum class Heard : std::uint8_t { kNothing, kOneFpdu, kSeveral };

// Victim is a responder, PD 7, stream 1, IRD 2, ORD 2, without RFC 7306 unless told otherwise: state S0 of the vectors.
struct Victim : rdmap::testing::Side {
  static rdmap::StreamConfig config(bool rfc7306 = false) {
    rdmap::StreamConfig config;
    config.scope = {.pd = 7, .stream = 1};
    config.ird = 2;
    config.rfc7306 = rfc7306;
    return config;
  }

  explicit Victim(std::size_t chunk = SIZE_MAX, Heard heard = Heard::kOneFpdu, bool rfc7306 = false)
      : Side(config(rfc7306)), chunk(chunk) {
    stream.start_responder(now);
    receive(startup_frame(mpa::FrameKind::kRequest, 1), now, chunk);
    drain();
    stream.accept({}, recvs, 2, 2, 7, now);
    transmit(now);
    const int num = heard == Heard::kNothing ? 0 : heard == Heard::kOneFpdu ? 1 : 5;
    for (int i = 0; i < num; ++i) feed(Octets{0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0});
    drain();
  }

  void feed(ConstBytes ulpdu) { receive(frame_fpdu(ulpdu), now, chunk); }

  // The ULPDUs that the victim sends now.
  std::vector<Octets> ulpdus() {
    auto out = deframe(transmit(now));
    drain();
    return out;
  }

  TimePoint now{};
  std::size_t chunk;
};

}  // namespace weft::sim
