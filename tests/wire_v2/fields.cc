#include "tests/wire_v2/fields.h"

#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

class Writer {
 public:
  void word(std::string name, std::uint32_t value) { put(std::move(name), value, 4); }
  void hyper(std::string name, std::uint64_t value) { put(std::move(name), value, 8); }
  // The octets with their padding.
  void octets(std::string name, Bytes octets) {
    const std::size_t padding = (4 - octets.size() % 4) % 4;
    if (padding > 0) name += " (+" + std::to_string(padding) + " pad)";
    octets.resize(octets.size() + padding);
    fields_.push_back({std::move(name), std::move(octets)});
  }
  void raw(std::string name, const Bytes& octets) { fields_.push_back({std::move(name), octets}); }
  std::vector<Field> take() { return std::move(fields_); }

 private:
  void put(std::string name, std::uint64_t value, std::size_t len) {
    Bytes octets(len);
    for (std::size_t i = 0; i < len; ++i) octets[i] = static_cast<std::uint8_t>(value >> (8 * (len - 1 - i)));
    fields_.push_back({std::move(name), std::move(octets)});
  }

  std::vector<Field> fields_;
};

std::string at(const std::string& list, std::size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

void segment(Writer& out, const std::string& name, const Segment& segment) {
  out.word(name + ".rdma_handle", segment.handle);
  out.word(name + ".rdma_length", segment.length);
  out.hyper(name + ".rdma_offset", segment.offset);
}

void read_list(Writer& out, const std::string& name, const ReadList& reads) {
  for (std::size_t i = 0; i < reads.size(); ++i) {
    out.word(at(name, i) + " present", 1);
    out.word(at(name, i) + ".rdma_position", reads[i].position);
    segment(out, at(name, i), reads[i].target);
  }
  out.word(name + " end", 0);
}

void chunk(Writer& out, const std::string& name, const Chunk& chunk) {
  out.word(name + " present", 1);
  out.word(name + " segment count", static_cast<std::uint32_t>(chunk.size()));
  for (std::size_t i = 0; i < chunk.size(); ++i) segment(out, at(name + ".seg", i), chunk[i]);
}

void write_list(Writer& out, const std::string& name, const std::vector<Chunk>& writes) {
  for (std::size_t i = 0; i < writes.size(); ++i) chunk(out, at(name, i), writes[i]);
  out.word(name + " end", 0);
}

void reply_chunk(Writer& out, const std::string& name, const std::optional<Chunk>& reply) {
  if (reply) {
    chunk(out, name, *reply);
  } else {
    out.word(name + " absent", 0);
  }
}

void property_set(Writer& out, const std::string& name, const std::vector<Property>& properties) {
  out.word(name + " count", static_cast<std::uint32_t>(properties.size()));
  for (std::size_t i = 0; i < properties.size(); ++i) {
    out.word(at(name, i) + ".rdma_which", properties[i].id);
    out.word(at(name, i) + ".rdma_data.len", static_cast<std::uint32_t>(properties[i].value.size()));
    if (!properties[i].value.empty()) out.octets(at(name, i) + ".rdma_data", properties[i].value);
  }
}

void subset(Writer& out, const std::string& name, const std::vector<std::uint32_t>& words) {
  out.word(name + " word count", static_cast<std::uint32_t>(words.size()));
  for (std::size_t i = 0; i < words.size(); ++i) out.word(at(name + " word", i), words[i]);
}

void error(Writer& out, const Message& message) {
  const ErrorCode* code = error_code(message.profile, message.error.code);
  out.word(code == nullptr ? "" : std::string("rdma_err = ") + code->name, message.error.code);
  for (std::size_t i = 0; i < message.error.words.size(); ++i) {
    const bool is_named = code != nullptr && i < code->words.size();
    out.word(is_named ? code->words[i] : "", message.error.words[i]);
  }
}

std::uint32_t word_of(std::optional<Direction> direction) {
  return direction == Direction::kReply ? 1 : 0;
}

void option(Writer& out, const Message& message) {
  out.word("rdma_optdir", word_of(message.direction));
  out.word("rdma_opttype", message.option);
  out.word("rdma_optinfo.len", static_cast<std::uint32_t>(message.option_info.size()));
  if (!message.option_info.empty()) out.octets("rdma_optinfo", message.option_info);
}

void cel05_body(Writer& out, const Message& message) {
  switch (message.type) {
    case cel05::kMsg:
    case cel05::kNomsg:
      out.word(message.direction == Direction::kReply ? "rdma_direction = REPLY" : "rdma_direction = CALL",
               word_of(message.direction));
      out.word("rdma_inv_handle", message.inv_handle);
      read_list(out, "rdma_reads", message.reads);
      write_list(out, "rdma_writes", message.writes);
      return reply_chunk(out, "rdma_reply", message.reply);
    case cel05::kError: return error(out, message);
    case cel05::kOptional: return option(out, message);
    case cel05::kConnprop:
      property_set(out, "rdma_start", message.properties);
      return subset(out, "rdma_nochg", message.subsets.at(0));
    case cel05::kReqprop: return property_set(out, "rdma_want", message.properties);
    case cel05::kResprop:
      subset(out, "rdma_done", message.subsets.at(0));
      subset(out, "rdma_rejected", message.subsets.at(1));
      return property_set(out, "rdma_other", message.properties);
    case cel05::kUpdprop: return property_set(out, "rdma_now", message.properties);
    default: return;
  }
}

void call_chunks(Writer& out, const Message& message) {
  read_list(out, "rdma_reads", message.reads);
  write_list(out, "rdma_provisional_writes", message.writes);
  reply_chunk(out, "rdma_provisional_reply", message.reply);
}

void wg07_body(Writer& out, const Message& message) {
  switch (message.type) {
    case wg07::kError: return error(out, message);
    case wg07::kConnpropMiddle:
    case wg07::kConnpropFinal: return property_set(out, "rdma_props", message.properties);
    case wg07::kCallExternal:
      out.word("rdma_inv_handle", message.inv_handle);
      read_list(out, "rdma_call", message.call);
      return call_chunks(out, message);
    case wg07::kCallInline: out.word("rdma_inv_handle", message.inv_handle); return call_chunks(out, message);
    case wg07::kCallMiddle:
    case wg07::kReplyMiddle: return out.word("rdma_remaining", message.remaining);
    case wg07::kReplyExternal:
      write_list(out, "rdma_writes", message.writes);
      return reply_chunk(out, "rdma_reply", message.reply);
    case wg07::kReplyInline: return write_list(out, "rdma_writes", message.writes);
    default: return;
  }
}

void prefix(Writer& out, const Message& message) {
  const std::string label = message.profile == Profile::kCel05 ? "rdma_proc = " : "rdma_htype = ";
  const HeaderType* type = header_type(message.profile, message.type);
  out.word("rdma_xid", message.xid);
  out.word("rdma_vers", message.version);
  out.word("rdma_credit", message.credit);
  out.word(label + (type == nullptr ? std::to_string(message.type) : type->name), message.type);
}

}  // namespace

std::vector<Field> fields_of(const Message& message) {
  Writer out;
  prefix(out, message);
  if (message.profile == Profile::kCel05) {
    cel05_body(out, message);
  } else {
    wg07_body(out, message);
  }
  const HeaderType* type = header_type(message.profile, message.type);
  const bool is_part = type != nullptr && type->kind == Kind::kPart;
  const char* name = is_part ? "Payload fragment (rdma_rpc_first_word ...)" : "Payload stream";
  if (!message.payload.empty()) out.raw(name, message.payload);
  return out.take();
}

Bytes encode(const Message& message) {
  Bytes octets;
  for (const Field& field : fields_of(message)) octets.insert(octets.end(), field.octets.begin(), field.octets.end());
  return octets;
}

}  // namespace weft::wire_v2
