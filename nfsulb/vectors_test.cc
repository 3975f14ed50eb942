// The walkers against tests/vectors/rpcrdma1-vectors.txt: they find the items that the messages' chunks name.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "nfsulb/bindings.h"
#include "nfsulb/server_habits.h"
#include "nfsulb/testing/octets.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/v1/header.h"
#include "tests/vectors/vector_file.h"

namespace weft::nfsulb {
namespace {

using rpcrdma::xdr::XdrReader;
using testing::Octets;
using testing::Walked;

// A message of the file, taken apart.
struct Message {
  rpcrdma::v1::Header header;
  rpcrdma::CallHeader call;  // of a Call; for a Reply, the header of its Call
  Octets body;               // arguments or results
  std::size_t rpc_header = 0;
};

Message read_message(const std::string& name, const std::string& call_name = "") {
  Message message;
  for (const vectors::Record& record : vectors::read_vector_file("tests/vectors/rpcrdma1-vectors.txt")) {
    if (record.name != name) continue;
    const auto octets = vectors::from_hex(record.find("hex").value());
    XdrReader reader(octets);
    EXPECT_EQ(parse_header(reader, message.header), rpcrdma::v1::HeaderError::kNone);
    const std::size_t begin = reader.position();
    rpcrdma::ReplyHeader reply;
    if (call_name.empty()) {
      EXPECT_EQ(parse_call(reader, message.call), rpcrdma::CallParse::kOk);
    } else {
      EXPECT_TRUE(parse_reply(reader, reply));
      message.call = read_message(call_name).call;
    }
    message.rpc_header = reader.position() - begin;
    message.body.assign(reader.rest().begin(), reader.rest().end());
    return message;
  }
  ADD_FAILURE() << "no vector " << name;
  return message;
}

const rpcrdma::Binding& binding_of(const Message& message) {
  return *find_binding(message.call.program, message.call.version);
}

// The Positions of the Read chunks, counted from the arguments, and the octets of each.
std::map<std::size_t, std::uint64_t> read_chunks(const Message& message) {
  std::map<std::size_t, std::uint64_t> chunks;
  for (const rpcrdma::ReadSegment& segment : message.header.lists.read_list) {
    chunks[segment.position - message.rpc_header] += segment.target.length;
  }
  return chunks;
}

TEST(Vectors, ReadChunksAreWhereTheItemsAre) {
  RecordProperty("proves", "U1-4-01 U1-6.1-01 U1-6.4.1-01");
  for (const char* name : {"V03", "V05", "V17"}) {
    SCOPED_TRACE(name);
    const Message call = read_message(name);
    std::vector<std::size_t> positions;
    for (const auto& [position, len] : read_chunks(call)) positions.push_back(position);
    const auto walk = testing::walk_arguments(binding_of(call), call.call.procedure, call.body, positions);
    ASSERT_EQ(walk.walked, Walked::kWhole);
    ASSERT_EQ(walk.items.size(), positions.size());
    for (const rpcrdma::EligibleItem& item : walk.items) {
      EXPECT_TRUE(item.reduced);
      const std::uint64_t len = read_chunks(call).at(item.position);
      EXPECT_TRUE(len == item.len || len == rpcrdma::xdr::round_up(item.len)) << len;
    }
  }
  const Message both = read_message("V17");
  EXPECT_EQ(read_chunks(both).size(), 2u);
}

TEST(Vectors, WriteChunksBelongToTheReadOperationsInOrder) {
  RecordProperty("proves", "U1-4-03 U1-6.1-03 U1-6.4.1-01 U1-6.4.3-01");
  struct Case {
    const char* reply;
    const char* call;
    std::vector<std::optional<std::uint32_t>> lengths;  // of the items
  };
  // V14 and V15 are Replies to a READ of NFSv3 that is not in the file; V03 has its program and version.
  for (const Case& c : {Case{"V08", "V07", {12288, 5000}}, Case{"V10", "V09", {3001, 6, 100}},
                        Case{"V14", "V03", {std::nullopt}}, Case{"V15", "V03", {4093}}}) {
    SCOPED_TRACE(c.reply);
    const Message reply = read_message(c.reply, c.call);
    std::vector<std::uint32_t> brought;
    for (const rpcrdma::SegmentArray& chunk : reply.header.lists.write_list) {
      brought.push_back(static_cast<std::uint32_t>(rpcrdma::total_length(chunk)));
    }
    constexpr std::uint32_t kNfs3Read = 6;
    const std::uint32_t procedure = reply.call.version == 3 ? kNfs3Read : reply.call.procedure;
    const auto walk = testing::walk_results(binding_of(reply), procedure, reply.body, brought);
    ASSERT_EQ(walk.walked, Walked::kWhole);
    ASSERT_EQ(walk.items.size(), c.lengths.size());
    for (std::size_t i = 0; i < c.lengths.size(); ++i) {
      ASSERT_EQ(walk.items[i].has_value(), c.lengths[i].has_value());
      if (!c.lengths[i]) continue;
      EXPECT_EQ(walk.items[i]->len, *c.lengths[i]);
      EXPECT_EQ(walk.items[i]->reduced, brought[i] != 0);  // the text of READLINK in V10 is inline
    }
  }
}

TEST(Vectors, TheChunksOfferedCoverTheBound) {
  RecordProperty("proves", "U1-3-01");
  for (const char* name : {"V07", "V09"}) {
    const Message call = read_message(name);
    const auto bound = testing::bound_reply(binding_of(call), call.call.procedure, call.body, {.max_text = 256});
    ASSERT_EQ(bound.walked, Walked::kWhole);
    const auto& chunks = call.header.lists.write_list;
    ASSERT_EQ(bound.items.size(), chunks.size());
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (chunks[i].empty()) continue;
      EXPECT_EQ(rpcrdma::total_length(chunks[i]), bound.items[i]);
    }
  }
  const Message readdir = read_message("V11");
  const auto bound = testing::bound_reply(binding_of(readdir), readdir.call.procedure, readdir.body);
  EXPECT_EQ(bound.rest, 4u + 8192 + kBeyondReaddir3);
  // The vector has room for the fields that the RFC counts.
  EXPECT_LE(rpcrdma::kPlainReplyHeader + bound.rest - kBeyondReaddir3,
            rpcrdma::total_length(*readdir.header.lists.reply_chunk));
}

}  // namespace
}  // namespace weft::nfsulb
