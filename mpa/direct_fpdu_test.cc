#include "mpa/direct_fpdu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "mpa/testing/naive_framer.h"

namespace weft::mpa {
namespace {

using Octets = std::vector<std::uint8_t>;

void feed(Staging& staging, ConstBytes octets) {
  std::copy(octets.begin(), octets.end(), staging.space(octets.size() + 1).begin());
  staging.commit(octets.size());
}

// Receiver reads one FPDU: its head (ULPDU_Length and header_len octets, `early` more) through staging, the rest of the
// payload into `place`, in reads of at most `chunk` octets.
struct Receiver {
  Receiver(bool crc, bool markers, std::uint64_t position) : reader(crc, markers) { reader.skip(position); }

  std::variant<NeedMore, DirectFpdu::Verified, Error> receive(ConstBytes wire, std::size_t header_len,
                                                              std::size_t payload_len, std::size_t early,
                                                              std::size_t num_views, std::size_t chunk) {
    place.assign(payload_len, 0xa5);
    std::size_t sent = 0;
    std::optional<PartialFpdu> partial;
    while (!partial || partial->arrived_ulpdu_len() < header_len + early) {
      feed(staging, wire.subspan(sent++, 1));
      partial = reader.partial(staging);
    }
    DirectFpdu fpdu(*partial, header_len, reader.crc(), staging, views(0, num_views));
    while (!fpdu.payload_done()) {
      std::vector<MutBytes> buffers;
      fpdu.append_buffers(views(fpdu.payload_received(), num_views), buffers);
      std::size_t most = chunk;
      for (MutBytes buffer : buffers) {
        const std::size_t n = std::min({most, buffer.size(), wire.size() - sent});
        std::copy_n(wire.begin() + static_cast<std::ptrdiff_t>(sent), n, buffer.begin());
        fpdu.on_rx(buffer.first(n));
        sent += n;
        most -= n;
      }
    }
    while (sent < wire.size()) {
      const auto end = fpdu.finish(staging);
      EXPECT_TRUE(std::holds_alternative<NeedMore>(end));
      feed(staging, wire.subspan(sent++, 1));
    }
    return fpdu.finish(staging);
  }

  // The payload's memory from `offset` on, as num_views pieces of one region.
  std::vector<MutBytes> views(std::size_t offset, std::size_t num_views) {
    std::vector<MutBytes> out;
    const std::size_t step = std::max<std::size_t>(place.size() / num_views, 1);
    for (std::size_t begin = 0; begin < place.size(); begin += step) {
      const std::size_t end = std::min(begin + step, place.size());
      if (end > offset) out.push_back(MutBytes(place).subspan(std::max(begin, offset), end - std::max(begin, offset)));
    }
    return out;
  }

  FpduReader reader;
  Staging staging{2 * 66 * 1024};
  Octets place;
};

Octets pattern(std::size_t len, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Octets octets(len);
  for (auto& octet : octets) octet = static_cast<std::uint8_t>(random());
  return octets;
}

TEST(DirectFpdu, PlacesThePayloadAndNothingElse) {
  RecordProperty("proves", "MPA-4.3-15");
  std::mt19937_64 random(5044);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const bool crc = random() % 4 != 0;
    const bool markers = random() % 2 != 0;
    const std::uint64_t position = random() % 512 / 4 * 4;
    const std::size_t header_len = 14 + random() % 40;
    const std::size_t payload_len = 1 + random() % (round % 10 == 0 ? 60000 : 3000);
    const std::size_t early = random() % payload_len;
    const Octets ulpdu = pattern(header_len + payload_len, random());
    testing::NaiveFramer framer(crc, markers, position);
    const Octets wire = framer.frame(ulpdu);
    Receiver receiver(crc, markers, position);
    const auto end = receiver.receive(wire, header_len, payload_len, early, 1 + random() % 5, 1 + random() % 5000);
    ASSERT_TRUE(std::holds_alternative<DirectFpdu::Verified>(end));
    EXPECT_EQ(std::get<DirectFpdu::Verified>(end).stream_len, wire.size());
    EXPECT_TRUE(std::equal(receiver.place.begin(), receiver.place.end(),
                           ulpdu.begin() + static_cast<std::ptrdiff_t>(header_len)));
    EXPECT_TRUE(receiver.staging.pending().empty());
  }
}

TEST(DirectFpdu, EveryFlippedOctetIsNoticed) {
  const Octets ulpdu = pattern(1200, 1);
  for (const bool markers : {false, true}) {
    testing::NaiveFramer framer(true, markers, 508);
    const Octets good = framer.frame(ulpdu);
    // ULPDU_Length aside: with another length it is another FPDU.
    for (std::size_t i = 2; i < good.size(); ++i) {
      Octets wire = good;
      wire[i] ^= 0x10;
      Receiver receiver(true, markers, 508);
      const auto end = receiver.receive(wire, 14, ulpdu.size() - 14, 0, 2, 700);
      ASSERT_TRUE(std::holds_alternative<Error>(end)) << i;
      EXPECT_EQ(std::get<Error>(end), Error::kCrc) << i;
    }
  }
}

TEST(DirectFpdu, AMarkerThatPointsElsewhereIsAnErrorOfItsOwn) {
  const Octets ulpdu = pattern(1200, 2);
  for (std::size_t marker_at : {4u, 516u, 1028u}) {
    testing::NaiveFramer framer(false, true, 508);
    Octets wire = framer.frame(ulpdu);
    wire[marker_at + 3] ^= 0x08;
    Receiver receiver(false, true, 508);
    const auto end = receiver.receive(wire, 14, ulpdu.size() - 14, 0, 1, 4000);
    ASSERT_TRUE(std::holds_alternative<Error>(end)) << marker_at;
    EXPECT_EQ(std::get<Error>(end), Error::kMarker);
  }
}

}  // namespace
}  // namespace weft::mpa
