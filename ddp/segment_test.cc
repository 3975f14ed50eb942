#include "ddp/segment.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::ddp {
namespace {

constexpr std::array<std::uint8_t, kTaggedHeaderLen> kTagged = {0xc1, 0x42, 0x1a, 0x2b, 0x3c, 0x01, 0x00,
                                                                0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07};
constexpr std::array<std::uint8_t, kUntaggedHeaderLen> kUntagged = {
    0x41, 0x46, 0x5d, 0x6e, 0x7f, 0x02, 0x00, 0x00, 0x00, 0x01, 0xff, 0xff, 0xff, 0xfe, 0x10, 0x20, 0x30, 0x40};

constexpr TaggedHeader kTaggedValue = {.last = true, .rsvd_ulp = 0x42, .stag = {0x1a2b3c01}, .to = 0x0001020304050607};
constexpr UntaggedHeader kUntaggedValue = {
    .last = true, .rsvd_ulp = 0x46, .rsvd_ulp_8_39 = 0x5d6e7f02, .qn = 1, .msn = {0xfffffffe}, .mo = 0x10203040};

TEST(Segment, GoldenOctetsBothWays) {
  RecordProperty("proves", "DDP-4.2-01 DDP-4.3-01 DDP-4.3-02");
  std::array<std::uint8_t, kTaggedHeaderLen> tagged;
  tagged.fill(0xa5);
  emit_header(kTaggedValue, tagged);
  EXPECT_EQ(tagged, kTagged);
  std::array<std::uint8_t, kUntaggedHeaderLen> untagged;
  untagged.fill(0xa5);
  emit_header(kUntaggedValue, untagged);
  EXPECT_EQ(untagged, kUntagged);
  EXPECT_EQ(std::get<TaggedHeader>(parse_segment(kTagged)->header), kTaggedValue);
  EXPECT_EQ(std::get<UntaggedHeader>(parse_segment(kUntagged)->header), kUntaggedValue);
}

TEST(Segment, EveryControlOctet) {
  RecordProperty("proves", "DDP-4.1-11");
  for (unsigned control = 0; control < 256; ++control) {
    std::array<std::uint8_t, kUntaggedHeaderLen> octets = kUntagged;
    octets[0] = static_cast<std::uint8_t>(control);
    const auto wire = parse_segment_wire(octets);
    ASSERT_TRUE(wire);
    const auto parsed = parse_segment(octets);
    EXPECT_EQ(parsed.ok(), (control & 3) == 1) << control;
    std::array<std::uint8_t, kUntaggedHeaderLen> emitted = octets;
    emitted[0] = 0xa5;
    if ((control & 0x80) != 0) {
      const auto& header = std::get<TaggedHeader>(wire->header);
      EXPECT_EQ(wire->payload.size(), kUntaggedHeaderLen - kTaggedHeaderLen);
      EXPECT_EQ(header.last, (control & 0x40) != 0);
      EXPECT_EQ(header.rsvd, control >> 2 & 0xf);
      EXPECT_EQ(header.dv, control & 3);
      if (!parsed) {
        EXPECT_EQ(parsed.error(), Error::kTaggedVersion);
      }
      emit_header(header, std::span(emitted).first<kTaggedHeaderLen>());
    } else {
      const auto& header = std::get<UntaggedHeader>(wire->header);
      EXPECT_TRUE(wire->payload.empty());
      EXPECT_EQ(header.last, (control & 0x40) != 0);
      EXPECT_EQ(header.rsvd, control >> 2 & 0xf);
      EXPECT_EQ(header.dv, control & 3);
      if (!parsed) {
        EXPECT_EQ(parsed.error(), Error::kUntaggedVersion);
      }
      emit_header(header, emitted);
    }
    EXPECT_EQ(emitted, octets) << control;
  }
}

TEST(Segment, AStreamHasOneVersion) {
  for (std::uint8_t dv = 0; dv < 4; ++dv) {
    auto tagged = kTagged;
    auto untagged = kUntagged;
    tagged[0] = static_cast<std::uint8_t>(0xc0 | dv);
    untagged[0] = static_cast<std::uint8_t>(0x40 | dv);
    for (std::uint8_t agreed = 0; agreed < 4; ++agreed) {
      EXPECT_EQ(parse_segment(tagged, agreed).ok(), dv == agreed);
      EXPECT_EQ(parse_segment(untagged, agreed).ok(), dv == agreed);
    }
  }
}

TEST(Segment, EveryTruncation) {
  for (std::size_t len = 0; len < kTaggedHeaderLen; ++len)
    EXPECT_EQ(parse_segment(ConstBytes(kTagged).first(len)).error(), Error::kLocalCatastrophic) << len;
  for (std::size_t len = 0; len < kUntaggedHeaderLen; ++len)
    EXPECT_EQ(parse_segment(ConstBytes(kUntagged).first(len)).error(), Error::kLocalCatastrophic) << len;
}

TEST(Segment, MsnsAreSerialNumbers) {
  EXPECT_EQ(Msn{}.value, 1u);
  EXPECT_EQ(Msn{0xffffffff}.next(), Msn{0});
  EXPECT_TRUE(Msn{0xffffffff}.before(Msn{0}));
  EXPECT_TRUE(Msn{1}.before(Msn{2}));
  EXPECT_FALSE(Msn{2}.before(Msn{1}));
  EXPECT_FALSE(Msn{2}.before(Msn{2}));
  EXPECT_FALSE(Msn{0}.before(Msn{0xffffffff}));
}

TEST(Segment, ErrorsHaveTheNumbersOfTheRfc) {
  EXPECT_EQ(etype(Error::kLocalCatastrophic), 0);
  EXPECT_EQ(code(Error::kLocalCatastrophic), 0);
  EXPECT_EQ(etype(Error::kTaggedVersion), 1);
  EXPECT_EQ(code(Error::kTaggedVersion), 4);
  EXPECT_EQ(etype(Error::kUntaggedVersion), 2);
  EXPECT_EQ(code(Error::kUntaggedVersion), 6);
  EXPECT_EQ(to_error(AccessError::kInvalidStag), Error::kInvalidStag);
  EXPECT_EQ(to_error(AccessError::kNotAssociated), Error::kNotAssociated);
  EXPECT_EQ(to_error(AccessError::kAccessRights), Error::kInvalidStag);
  EXPECT_EQ(to_error(AccessError::kToWrap), Error::kToWrap);
  EXPECT_EQ(to_error(AccessError::kBaseBounds), Error::kBaseBounds);
}

}  // namespace
}  // namespace weft::ddp
