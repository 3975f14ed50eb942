#include "tests/wire_v1/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/vectors/vector_file.h"

namespace weft::wire_v1 {
namespace {

using testing::HasSubstr;
using testing::VariantWith;

std::vector<vectors::Record> vectors_of(char part) {
  auto records = vectors::read_vector_file("tests/vectors/rpcrdma1-vectors.txt");
  std::erase_if(records, [part](const vectors::Record& record) { return record.name.at(0) != part; });
  EXPECT_FALSE(records.empty());
  return records;
}

std::vector<std::uint8_t> octets_of(const vectors::Record& record) {
  return vectors::from_hex(record.find("hex").value());
}

std::vector<std::uint8_t> vector_named(const std::string& name) {
  for (const char part : {'V', 'M'}) {
    for (const vectors::Record& record : vectors_of(part)) {
      if (record.name == name) return octets_of(record);
    }
  }
  ADD_FAILURE() << name;
  return {};
}

Message decoded(const std::string& name) {
  auto got = decode(vector_named(name));
  EXPECT_TRUE(std::holds_alternative<Message>(got)) << name << ": " << std::get<Fault>(got).text;
  return std::get<Message>(got);
}

std::string fault_of(const std::vector<std::uint8_t>& octets) {
  const auto got = decode(octets);
  return std::holds_alternative<Fault>(got) ? std::get<Fault>(got).text : "";
}

TEST(WireV1Decoder, DecodesEveryWellFormedVector) {
  for (const vectors::Record& record : vectors_of('V')) {
    const auto octets = octets_of(record);
    const auto got = decode(octets);
    ASSERT_TRUE(std::holds_alternative<Message>(got)) << record.name << ": " << std::get<Fault>(got).text;
    const auto& message = std::get<Message>(got);
    // "len: 68  header: 28  payload: 40"
    const std::string lens = record.find("len").value();
    EXPECT_EQ(message.header_len, std::stoul(lens.substr(lens.find("header: ") + 8))) << record.name;
  }
}

TEST(WireV1Decoder, TellsTheKinds) {
  EXPECT_EQ(decoded("V01").kind, Kind::kCall);
  EXPECT_EQ(decoded("V02").kind, Kind::kReply);
  EXPECT_EQ(decoded("V06").kind, Kind::kLongCall);
  EXPECT_EQ(decoded("V12").kind, Kind::kLongReply);
  EXPECT_EQ(decoded("V16").kind, Kind::kLongCall);
  EXPECT_EQ(decoded("V18").kind, Kind::kErrVers);
  EXPECT_EQ(decoded("V19").kind, Kind::kErrChunk);
  EXPECT_EQ(decoded("V21").kind, Kind::kCall);
  EXPECT_EQ(decoded("V25").kind, Kind::kErrChunk);
}

TEST(WireV1Decoder, ReadsTheFields) {
  const Message call = decoded("V03");
  EXPECT_EQ(call.xid, 0x11110003u);
  EXPECT_EQ(call.credits, 32u);
  ASSERT_EQ(call.reads.size(), 2u);
  EXPECT_EQ(call.reads[1].position, 96u);
  EXPECT_EQ(call.reads[1].handle, 0xa002u);
  EXPECT_EQ(call.reads[1].length, 999u);
  EXPECT_EQ(call.reads[1].offset, 0x7f0000001004u);
  EXPECT_EQ(length_of(call.reads), 5095u);

  const Message compound = decoded("V09");
  ASSERT_EQ(compound.writes.size(), 3u);
  EXPECT_EQ(compound.writes[0].size(), 2u);
  EXPECT_TRUE(compound.writes[1].empty());
  EXPECT_EQ(compound.writes[2].at(0).handle, 0xd021u);
  EXPECT_FALSE(compound.reply);

  const Message reply = decoded("V12");
  ASSERT_TRUE(reply.reply);
  EXPECT_EQ(length_of(*reply.reply), 5328u);

  const Message refusal = decoded("V18");
  EXPECT_EQ(refusal.low, 1u);
  EXPECT_EQ(refusal.high, 1u);
}

// The handle of each segment stands where the decoder says.
TEST(WireV1Decoder, SaysWhereSegmentsStand) {
  const auto octets = vector_named("V16");
  const Message message = decoded("V16");
  ASSERT_FALSE(message.reads.empty());
  for (const Segment& segment : message.reads) {
    EXPECT_EQ(octets.at(segment.at + 3), segment.handle & 0xff);
    EXPECT_EQ(octets.at(segment.at + 7), segment.length & 0xff);
  }
}

// The faults of these records concern a Call or a program that the decoder does not see, or the receiver's limit.
const std::set<std::string> kWellFormedAlone = {"M09", "M12", "M25", "M27", "M28", "M36",
                                                "M37", "M38", "M39", "M44", "M45"};

TEST(WireV1Decoder, RefusesEveryMalformedVector) {
  for (const vectors::Record& record : vectors_of('M')) {
    EXPECT_EQ(fault_of(octets_of(record)).empty(), kWellFormedAlone.contains(record.name))
        << record.name << " " << fault_of(octets_of(record));
  }
}

TEST(WireV1Decoder, SaysWhatIsWrong) {
  EXPECT_THAT(fault_of(vector_named("M03")), HasSubstr("rdma_vers is not 1"));
  EXPECT_THAT(fault_of(vector_named("M07")), HasSubstr("rdma_proc"));
  EXPECT_THAT(fault_of(vector_named("M10")), HasSubstr("no chunk for its Payload stream"));
  EXPECT_THAT(fault_of(vector_named("M13")), HasSubstr("without a Position Zero Read chunk"));
  EXPECT_THAT(fault_of(vector_named("M16")), HasSubstr("discriminator"));
  EXPECT_THAT(fault_of(vector_named("M18")), HasSubstr("counts more segments"));
  EXPECT_THAT(fault_of(vector_named("M22")), HasSubstr("multiple of four"));
  EXPECT_THAT(fault_of(vector_named("M23")), HasSubstr("another XID"));
  EXPECT_THAT(fault_of(vector_named("M26")), HasSubstr("beyond the end"));
  EXPECT_THAT(fault_of(vector_named("M35")), HasSubstr("Read list"));
}

// Every message that ends early is refused, except where a Call or Reply ends with its header: arguments and results
// are not the decoder's.
TEST(WireV1Decoder, RefusesEveryTruncation) {
  for (const vectors::Record& record : vectors_of('V')) {
    const auto octets = octets_of(record);
    const Message whole = std::get<Message>(decode(octets));
    for (std::size_t len = 0; len < octets.size(); ++len) {
      const bool cuts_header = len < whole.header_len + 20;
      if (cuts_header || len % 4 != 0) {
        EXPECT_NE(fault_of({octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(len)}), "")
            << record.name << " cut to " << len;
      }
    }
  }
}

TEST(WireV1Decoder, NothingFollowsRdmaNomsgAndRdmaError) {
  for (const char* name : {"V06", "V12", "V18", "V19"}) {
    auto octets = vector_named(name);
    octets.insert(octets.end(), 4, 0);
    EXPECT_THAT(fault_of(octets), HasSubstr("something follows")) << name;
  }
}

TEST(WireV1Decoder, CreditsAreNeverZero) {
  constexpr std::size_t kCredit = 8;
  for (const char* name : {"V01", "V02", "V06", "V12", "V18", "V19"}) {
    auto octets = vector_named(name);
    std::fill_n(octets.begin() + kCredit, 4, std::uint8_t{0});
    EXPECT_THAT(fault_of(octets), HasSubstr("rdma_credit is 0")) << name;
  }
}

TEST(WireV1Decoder, AnRpcReplyOfNoKnownStatusIsRefused) {
  auto octets = vector_named("V02");
  octets.back() = 6;
  EXPECT_THAT(fault_of(octets), HasSubstr("accept_stat"));
}

}  // namespace
}  // namespace weft::wire_v1
