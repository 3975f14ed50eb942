// Every vector of rpcrdma2-vectors.txt through the decoder: a valid one gives the fields that the file lists, and the
// same octets again; an invalid one is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "tests/conformance/ran.h"
#include "tests/vectors/vector_file.h"
#include "tests/wire_v2/decoder.h"
#include "tests/wire_v2/fields.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

using testing::HasSubstr;

constexpr const char* kFile = "tests/vectors/rpcrdma2-vectors.txt";

struct Vector {
  std::string id, profile, expect, reply;
  Bytes octets;
  std::size_t len = 0;
  std::vector<std::string> listing;  // "#   16  00000002           rdma_err = ..."
};

void add_line(const std::string& line, Vector& vector) {
  if (line.front() == '#') return vector.listing.push_back(line);
  const std::string key = line.substr(0, line.find(':'));
  const std::string value = line.substr(std::min(line.size(), key.size() + 2));
  if (key == "id") vector.id = value;
  if (key == "profile") vector.profile = value;
  if (key == "expect") vector.expect = value;
  if (key == "reply") vector.reply = value;
  if (key == "len") vector.len = std::stoul(value);
  if (key == "hex") vector.octets = vectors::from_hex(value);
}

// The file lists the fields in comments, which vectors::read_vector_file leaves out.
std::vector<Vector> read_vectors() {
  std::ifstream in(kFile);
  EXPECT_TRUE(in) << kFile;
  std::vector<Vector> all;
  Vector vector;
  const auto flush = [&] {
    if (!vector.id.empty()) all.push_back(std::move(vector));
    vector = {};
  };
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      flush();
    } else {
      add_line(line, vector);
    }
  }
  flush();
  return all;
}

std::vector<Profile> profiles_of(const Vector& vector) {
  if (vector.profile == "cel05") return {Profile::kCel05};
  if (vector.profile == "wg07") return {Profile::kWg07};
  if (vector.profile == "cel05+wg07") return {Profile::kCel05, Profile::kWg07};
  return {};
}

// An error's version is the one that it refuses; accept-then-X is right by itself.
bool is_valid(const Vector& vector) {
  return vector.expect.starts_with("accept");
}

std::string hex(Octets octets) {
  constexpr std::size_t kShown = 8;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < std::min(octets.size(), kShown); ++i) {
    if (i > 0 && i % 4 == 0) text += ' ';
    text += kDigits[octets[i] >> 4];
    text += kDigits[octets[i] & 15];
  }
  if (octets.size() > kShown) text += "... (" + std::to_string(octets.size()) + " octets)";
  return text;
}

// In the notation of the file.
std::vector<std::string> listing_of(const Message& message) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  for (const Field& field : fields_of(message)) {
    std::string offset = std::to_string(at);
    offset.insert(0, 5 - offset.size(), ' ');
    std::string value = hex(field.octets);
    if (value.size() < 17) value.resize(17, ' ');
    lines.push_back("#" + offset + "  " + value + "  " + field.name);
    at += field.octets.size();
  }
  return lines;
}

std::variant<Message, Fault> decoded(const Bytes& octets, Profile profile) {
  conformance::ran(std::string("2-") + name_of(profile));
  return decode(octets, profile);
}

Fault fault_of(const Bytes& octets, Profile profile) {
  const auto got = decoded(octets, profile);
  return std::holds_alternative<Fault>(got) ? std::get<Fault>(got) : Fault{};
}

TEST(WireV2Vectors, ThereAreAllOfThem) {
  std::map<std::string, int> count;
  std::set<std::string> ids;
  for (const Vector& vector : read_vectors()) {
    ++count[vector.profile];
    EXPECT_TRUE(ids.insert(vector.id).second) << vector.id;
    EXPECT_EQ(vector.octets.size(), vector.len) << vector.id;
  }
  const std::map<std::string, int> expected = {{"cel05", 50}, {"wg07", 41}, {"cel05+wg07", 1}, {"flags", 4}, {"v1", 2}};
  EXPECT_EQ(count, expected);
}

// decode() refuses what rpcgen's encoder would not give back.
TEST(WireV2Vectors, ValidOnesGiveTheirFieldsAndTheSameOctets) {
  RecordProperty("proves", "W2-8.4-2 R2-7.2-10");
  std::size_t count = 0;
  for (const Vector& vector : read_vectors()) {
    if (!is_valid(vector)) continue;
    for (const Profile profile : profiles_of(vector)) {
      const auto got = decoded(vector.octets, profile);
      ASSERT_TRUE(std::holds_alternative<Message>(got)) << vector.id << ": " << std::get<Fault>(got).text;
      const auto& message = std::get<Message>(got);
      EXPECT_EQ(encode(message), vector.octets) << vector.id;
      EXPECT_EQ(message.header_len + message.payload.size(), vector.len) << vector.id;
      // Listed in the words of one draft alone.
      if (profile == Profile::kCel05 || vector.profile == "wg07") {
        EXPECT_EQ(listing_of(message), vector.listing) << vector.id;
      }
      ++count;
    }
  }
  EXPECT_EQ(count, 71u);  // A01 in both
}

TEST(WireV2Vectors, InvalidOnesAreFaults) {
  std::size_t count = 0;
  for (const Vector& vector : read_vectors()) {
    if (is_valid(vector)) continue;
    for (const Profile profile : profiles_of(vector)) {
      EXPECT_NE(fault_of(vector.octets, profile).text, "") << vector.id;
      ++count;
    }
  }
  EXPECT_EQ(count, 22u);
}

// The rule that each of them breaks, so that none is refused for another reason.
TEST(WireV2Vectors, InvalidOnesBreakTheRuleThatTheyAreMadeFor) {
  const std::map<std::string, std::string> rules = {
      {"S70", "R2-7.2.4-4"}, {"S71", "R2-7.2-11"},  {"S72", "R2-7.2.4-5"}, {"S73", "R2-7.2.4-5"},
      {"S74", "R2-7.2.4-5"}, {"S75", "R2-7.2.4-5"}, {"S76", "R2-7.2.2-4"}, {"S77", "R2-7.2.4-5"},
      {"S78", "R2-6.1.1-5"}, {"S79", "R2-6.1.1-5"}, {"S80", "R2-3.1-3"},   {"S81", "R2-7.2.4-28"},
      {"S82", "R2-7.2.4-5"}, {"W40", "W2-6.1-4"},   {"W41", "W2-6.3.7-2"}, {"W42", "W2-4.5.1.1-1"},
      {"W43", "W2-5.1-4"},   {"W44", "W2-5.1-3"},   {"W46", "W2-6.3.5-3"}, {"W47", "W2-7-1"},
      {"W48", "W2-7-3"},     {"W49", "W2-6.3.8-2"}};
  for (const Vector& vector : read_vectors()) {
    if (is_valid(vector)) continue;
    for (const Profile profile : profiles_of(vector)) {
      EXPECT_EQ(fault_of(vector.octets, profile).rule, rules.at(vector.id)) << vector.id;
    }
  }
}

// The octets of the flags drafts that are also cel05's, and those that are not.
TEST(WireV2Vectors, OtherVersionsOctetsAreToldApart) {
  for (const Vector& vector : read_vectors()) {
    const bool is_cel05 = fault_of(vector.octets, Profile::kCel05).text.empty();
    const bool is_wg07 = fault_of(vector.octets, Profile::kWg07).text.empty();
    if (vector.profile == "flags") {
      EXPECT_EQ(is_cel05, vector.id == "F01" || vector.id == "F02") << vector.id;
      EXPECT_FALSE(is_wg07) << vector.id;
    } else if (vector.profile == "v1") {
      EXPECT_EQ(is_cel05, vector.id == "S60") << vector.id;  // ERR_VERS is the same in all versions
      EXPECT_EQ(is_wg07, vector.id == "S60") << vector.id;
    }
  }
}

// A message that ends early, or goes on where it may not, is refused; what follows an RPC header is not the decoder's.
TEST(WireV2Vectors, TruncationsAreFaults) {
  constexpr std::size_t kRpcReplyHeader = 24;
  for (const Vector& vector : read_vectors()) {
    if (!is_valid(vector)) continue;
    for (const Profile profile : profiles_of(vector)) {
      const Message whole = std::get<Message>(decode(vector.octets, profile));
      for (std::size_t len = 0; len < vector.len; ++len) {
        const bool is_part = whole.kind == Kind::kPart || (profile == Profile::kWg07 && whole.kind == Kind::kInline);
        const std::size_t needed = is_part                                                     ? 4
                                   : profile == Profile::kCel05 && whole.kind == Kind::kInline ? kRpcReplyHeader
                                                                                               : 0;
        if (len >= whole.header_len + needed) continue;
        const Bytes cut(vector.octets.begin(), vector.octets.begin() + static_cast<std::ptrdiff_t>(len));
        EXPECT_NE(fault_of(cut, profile).text, "") << vector.id << " cut to " << len;
      }
      if (whole.kind == Kind::kInline || whole.kind == Kind::kPart || whole.kind == Kind::kOption) continue;
      Bytes longer = vector.octets;
      longer.insert(longer.end(), 4, 0);
      EXPECT_THAT(fault_of(longer, profile).text, HasSubstr("something follows")) << vector.id;
    }
  }
}

}  // namespace
}  // namespace weft::wire_v2
