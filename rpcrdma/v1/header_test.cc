#include "rpcrdma/v1/header.h"

#include <gtest/gtest.h>

#include "rpcrdma/testing/vectors.h"
#include "rpcrdma/v1/profile.h"

namespace weft::rpcrdma::v1 {
namespace {

using testing::load_vector;
using testing::load_vectors;
using testing::to_hex;
using Octets = std::vector<std::uint8_t>;

Octets emit(const Header& header) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_header(out, header);
  return octets;
}

TEST(Header, EveryWellFormedVectorParsesAndComesOutOctetForOctet) {
  RecordProperty("proves",
                 "R1-5-01 R1-5.1.2-01 R1-5.1.2-02 R1-5.1.3-01 R1-5.1.3-02 R1-5.1.3-03 R1-5.7-01 R1-5.7-02 R1-5.7-03 "
                 "R1-5.7-04 R1-4.4.3-01 R1-4.4.5-01 R1-4.4.6-01");
  const auto vectors = load_vectors('V');
  ASSERT_EQ(vectors.size(), 25u);
  for (const auto& vector : vectors) {
    xdr::XdrReader in(vector.octets);
    Header header;
    ASSERT_EQ(parse_header(in, header), HeaderError::kNone) << vector.id;
    EXPECT_EQ(in.position(), vector.header_len) << vector.id;
    Octets octets = emit(header);
    octets.insert(octets.end(), in.rest().begin(), in.rest().end());
    EXPECT_EQ(to_hex(octets), to_hex(vector.octets)) << vector.id;
    if (header.proc == Proc::kMsg || header.proc == Proc::kNomsg) {
      EXPECT_EQ(kProfile.call_lengths.of(header.lists), vector.header_len) << vector.id;
    }
  }
}

TEST(Header, EveryTruncationIsAnError) {
  RecordProperty("proves", "R1-5.5.2-01");
  for (const auto& vector : load_vectors('V')) {
    for (std::size_t len = 0; len < vector.header_len; ++len) {
      const Octets cut(vector.octets.begin(), vector.octets.begin() + static_cast<std::ptrdiff_t>(len));
      xdr::XdrReader in{ConstBytes(cut)};
      Header header;
      const HeaderError error = parse_header(in, header);
      EXPECT_TRUE(error == HeaderError::kTruncated || error == HeaderError::kCount) << vector.id << " cut at " << len;
    }
  }
}

// Each word of each header replaced by hostile values: parsing never reads outside (ASan) and, where it succeeds, the
// value emits and parses to itself.
TEST(Header, HostileWordsNeverLeadOutside) {
  for (const auto& vector : load_vectors('V')) {
    for (std::size_t at = 0; at + 4 <= vector.header_len; at += 4) {
      for (const std::uint32_t word : {0u, 1u, 2u, 3u, 4u, 5u, 0x7fffffffu, 0x80000001u, 0xffffffffu}) {
        Octets octets = vector.octets;
        for (std::size_t i = 0; i < 4; ++i) octets[at + i] = static_cast<std::uint8_t>(word >> (24 - 8 * i));
        xdr::XdrReader in(octets);
        Header header;
        if (parse_header(in, header) != HeaderError::kNone) continue;
        const Octets again = emit(header);
        EXPECT_EQ(again, Octets(octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(in.position())));
      }
    }
  }
}

TEST(Header, CountsOfFourThousandMillionAllocateNothing) {
  Octets octets = load_vector("V07").octets;
  for (std::size_t i = 0; i < 4; ++i) octets[24 + i] = 0xff;  // the first Write chunk's count
  xdr::XdrReader in(octets);
  Header header;
  EXPECT_EQ(parse_header(in, header), HeaderError::kCount);
  EXPECT_TRUE(header.lists.write_list.front().empty());
}

TEST(Header, MsgpAndDoneAreReadable) {
  RecordProperty("proves", "R1-5.1.3-04");
  Header msgp;
  msgp.proc = Proc::kMsgp;
  msgp.align = 64;
  msgp.thresh = 1024;
  const Octets octets = emit(msgp);
  EXPECT_EQ(octets.size(), 36u);
  xdr::XdrReader in(octets);
  Header back;
  ASSERT_EQ(parse_header(in, back), HeaderError::kNone);
  EXPECT_EQ(back, msgp);

  Header done;
  done.proc = Proc::kDone;
  EXPECT_EQ(emit(done).size(), 16u) << "xid, vers, credit, proc";
}

}  // namespace
}  // namespace weft::rpcrdma::v1
