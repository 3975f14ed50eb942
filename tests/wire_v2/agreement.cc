// The only file that knows both: the codec of the engines, and the decoder that shares no code with it.
#include "tests/wire_v2/agreement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"
#include "tests/wire_v2/decoder.h"
#include "tests/wire_v2/fields.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

namespace codec = rpcrdma;

Segment segment_of(const codec::Segment& segment) {
  return {segment.handle, segment.length, segment.offset};
}

Chunk chunk_of(const codec::SegmentArray& segments) {
  Chunk chunk;
  for (const codec::Segment& segment : segments) chunk.push_back(segment_of(segment));
  return chunk;
}

void put_lists(const codec::ChunkListsView& lists, Message& message) {
  for (const codec::Segment& segment : lists.call_chunk) message.call.push_back({0, segment_of(segment)});
  for (const codec::ReadSegment& read : lists.read_list) {
    message.reads.push_back({read.position, segment_of(read.target)});
  }
  for (const codec::SegmentArray& chunk : lists.write_list) message.writes.push_back(chunk_of(chunk));
  if (lists.reply_chunk) message.reply = chunk_of(*lists.reply_chunk);
}

void put_error(std::uint32_t code, const codec::v2::ErrorArm& arm, Message& message) {
  message.error.code = code;
  const ErrorCode* known = error_code(message.profile, code);
  if (known == nullptr) return;
  for (const std::string name : known->words) {
    message.error.words.push_back(name == "rdma_vers_low"       ? arm.vers_low
                                  : name == "rdma_vers_high"    ? arm.vers_high
                                  : name == "rdma_max_chunks"   ? arm.max_chunks
                                  : name == "rdma_max_segments" ? arm.max_segments
                                  : name == "rdma_chunk_index"  ? arm.chunk_index
                                                                : arm.length_needed);
  }
}

std::vector<Property> set_of(const codec::v2::Propset& set) {
  std::vector<Property> properties;
  for (const codec::v2::Propval& value : set) properties.push_back({value.which, value.data});
  return properties;
}

// What the codec read, in the words of this folder.
struct Reader {
  Message message;

  template <codec::v2_cel05::Proc kType>
  void operator()(const codec::v2_cel05::ChunkListsBody<kType>& body) {
    put_direction(body.direction);
    message.inv_handle = body.inv_handle;
    put_lists(body.lists, message);
  }
  void operator()(const codec::v2_cel05::Error& body) {
    put_error(static_cast<std::uint32_t>(body.err), body.arm, message);
  }
  void operator()(const codec::v2_cel05::Optional& body) {
    put_direction(body.optdir);
    message.option = body.opttype;
    message.option_info = body.optinfo;
  }
  void operator()(const codec::v2_cel05::Connprop& body) {
    message.properties = set_of(body.start);
    message.subsets = {body.nochg.words};
  }
  void operator()(const codec::v2_cel05::Reqprop& body) { message.properties = set_of(body.want); }
  void operator()(const codec::v2_cel05::Resprop& body) {
    message.properties = set_of(body.other);
    message.subsets = {body.done.words, body.rejected.words};
  }
  void operator()(const codec::v2_cel05::Updprop& body) { message.properties = set_of(body.now); }

  void operator()(const codec::v2_wg07::Error& body) {
    put_error(static_cast<std::uint32_t>(body.err), body.arm, message);
  }
  void operator()(const codec::v2_wg07::Grant& /*body*/) {}
  template <codec::v2_wg07::Htype kType>
  void operator()(const codec::v2_wg07::Connprop<kType>& body) {
    message.properties = set_of(body.props);
  }
  template <codec::v2_wg07::Htype kType>
  void operator()(const codec::v2_wg07::Call<kType>& body) {
    message.inv_handle = body.inv_handle;
    put_lists(body.lists, message);
  }
  template <codec::v2_wg07::Htype kType>
  void operator()(const codec::v2_wg07::Middle<kType>& body) {
    message.remaining = body.remaining;
  }
  template <codec::v2_wg07::Htype kType>
  void operator()(const codec::v2_wg07::Reply<kType>& body) {
    put_lists(body.lists, message);
  }

 private:
  template <typename D>
  void put_direction(D direction) {
    message.direction = direction == D::kReply ? Direction::kReply : Direction::kCall;
  }
};

template <typename Body>
std::uint32_t type_of(const Body& body) {
  if constexpr (requires { body.kProc; }) {
    return static_cast<std::uint32_t>(body.kProc);
  } else {
    return static_cast<std::uint32_t>(body.kHtype);
  }
}

// Empty if the codec refuses the octets.
template <typename Header>
std::optional<Message> accepted(Octets octets, Profile profile) {
  Header header;
  ConstBytes payload;
  if (parse_message(octets, header, payload) != codec::v2::HeaderError::kNone) return {};
  Reader reader;
  Message& message = reader.message;
  message.profile = profile;
  message.xid = header.xid;
  message.version = header.vers;
  message.credit = header.credit;
  std::visit(
      [&](const auto& body) {
        message.type = type_of(body);
        reader(body);
      },
      header.body);
  message.header_len = octets.size() - payload.size();
  message.payload.assign(payload.begin(), payload.end());
  return std::move(message);
}

std::optional<Message> accepted(Octets octets, Profile profile) {
  return profile == Profile::kCel05 ? accepted<codec::v2_cel05::Header>(octets, profile)
                                    : accepted<codec::v2_wg07::Header>(octets, profile);
}

std::string difference(const Message& codec, const Message& decoder) {
  const auto theirs = fields_of(codec), ours = fields_of(decoder);
  for (std::size_t i = 0; i < std::min(theirs.size(), ours.size()); ++i) {
    if (theirs[i].name != ours[i].name) return "the codec reads " + theirs[i].name + " where " + ours[i].name + " is";
    if (theirs[i].octets != ours[i].octets) return "the codec reads another " + ours[i].name;
  }
  if (theirs.size() != ours.size()) return "the codec reads other fields";
  return codec.header_len != decoder.header_len ? "the codec has the header end elsewhere" : "";
}

}  // namespace

std::string disagreement(Octets octets, Profile profile) {
  const auto codec = accepted(octets, profile);
  if (codec) {
    const auto found = read(octets, profile);
    if (const auto* fault = std::get_if<Fault>(&found)) return "the codec accepts what is no message: " + fault->text;
    return difference(*codec, std::get<Message>(found));
  }
  const auto found = decode(octets, profile);
  const auto* message = std::get_if<Message>(&found);
  if (message == nullptr || message->properties.size() > codec::v2::kMaxProperties) return {};
  return "the codec refuses a message that a sender may send";
}

}  // namespace weft::wire_v2
