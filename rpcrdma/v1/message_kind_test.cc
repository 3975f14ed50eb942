#include "rpcrdma/v1/message_kind.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "rpcrdma/rpc_message.h"
#include "rpcrdma/testing/vectors.h"
#include "rpcrdma/v1/header.h"

namespace weft::rpcrdma::v1 {
namespace {

using testing::load_vector;
using testing::load_vectors;
using Octets = std::vector<std::uint8_t>;

// The same question answered from the parsed header.
MessageKind kind_by_parsing(const Octets& octets) {
  xdr::XdrReader in(octets);
  Header header;
  const HeaderError error = parse_header(in, header);
  constexpr std::size_t kFixedHeader = 16;  // xid, vers, credit, proc
  if (octets.size() >= kFixedHeader && error != HeaderError::kProc && header.proc == Proc::kError) {
    return MessageKind::kReply;
  }
  if (error != HeaderError::kNone || header.vers != kVersion) return MessageKind::kUnclear;
  if (header.proc == Proc::kNomsg) {
    if (!header.lists.read_list.empty()) return MessageKind::kCall;
    const bool filled = header.lists.reply_chunk && total_length(*header.lists.reply_chunk) != 0;
    return filled ? MessageKind::kReply : MessageKind::kUnclear;
  }
  std::uint32_t xid = 0, type = 0;
  if (header.proc != Proc::kMsg || !in.u32(xid) || !in.u32(type) || type > 1) return MessageKind::kUnclear;
  return type == 0 ? MessageKind::kCall : MessageKind::kReply;
}

TEST(MessageKind, CallsAndRepliesAreToldApart) {
  RecordProperty("proves", "R1-7.1.4-02 R1-7.2.1-04");
  for (const char* id : {"V01", "V03", "V05", "V06", "V07", "V09", "V11", "V16", "V17", "V21", "V23", "V24"}) {
    EXPECT_EQ(message_kind(load_vector(id).octets), MessageKind::kCall) << id;
  }
  for (const char* id : {"V02", "V04", "V08", "V10", "V12", "V22", "V25"}) {
    EXPECT_EQ(message_kind(load_vector(id).octets), MessageKind::kReply) << id;
  }
}

// An RDMA_NOMSG that neither has a Read list nor fills a Reply chunk could be either.
TEST(MessageKind, WhatSaysNothingIsUnclear) {
  RecordProperty("proves", "R1-7.2.1-05");
  Header header;
  header.proc = Proc::kNomsg;
  const auto kind = [&header] {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_header(out, header);
    return message_kind(octets);
  };
  EXPECT_EQ(kind(), MessageKind::kUnclear);
  header.lists.reply_chunk = SegmentArray{{1, 0, 0}};
  EXPECT_EQ(kind(), MessageKind::kUnclear);
  header.lists.reply_chunk = SegmentArray{{1, 0, 0}, {2, 9, 0}};
  EXPECT_EQ(kind(), MessageKind::kReply);
  header.lists.read_list = {{0, {3, 9, 0}}};
  EXPECT_EQ(kind(), MessageKind::kCall);
  header.vers = 2;
  EXPECT_EQ(kind(), MessageKind::kUnclear);
  EXPECT_EQ(message_kind({}), MessageKind::kUnclear);
}

// Cut short or with any word changed, a message is judged as a parse of all of it would judge it.
TEST(MessageKind, AgreesWithTheParserOnWhatIsMalformed) {
  std::map<MessageKind, int> seen;
  const auto check = [&seen](const Octets& octets, const std::string& id) {
    const MessageKind kind = message_kind(octets);
    EXPECT_EQ(kind, kind_by_parsing(octets)) << id << " " << testing::to_hex(octets);
    ++seen[kind];
  };
  for (const char letter : {'V', 'M'}) {
    for (const auto& vector : load_vectors(letter)) {
      for (std::size_t len = 0; len <= vector.octets.size(); ++len) {
        check({vector.octets.begin(), vector.octets.begin() + static_cast<std::ptrdiff_t>(len)}, vector.id);
      }
      for (std::size_t at = 0; at + 4 <= vector.octets.size(); at += 4) {
        for (const std::uint8_t last : Octets{0, 1, 2, 3, 4, 5, 255}) {
          Octets changed = vector.octets;
          changed[at] = changed[at + 1] = changed[at + 2] = last == 255 ? 255 : 0;
          changed[at + 3] = last;
          check(changed, vector.id);
        }
      }
    }
  }
  for (const MessageKind kind : {MessageKind::kCall, MessageKind::kReply, MessageKind::kUnclear}) {
    EXPECT_GT(seen[kind], 100);
  }
}

}  // namespace
}  // namespace weft::rpcrdma::v1
