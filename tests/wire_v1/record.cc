#include "tests/wire_v1/record.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace weft::wire_v1 {
namespace {

constexpr std::size_t kWord = 4, kOffsetLen = 8;

// FNV-1a, 64 bits.
std::string hash_of(Octets octets) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t octet : octets) hash = (hash ^ octet) * 0x100000001b3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::uint32_t first_word(Octets octets) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < kWord; ++i) word = word << 8 | octets[i];
  return word;
}

void blank(std::vector<std::uint8_t>& octets, std::size_t at, std::size_t len) {
  if (at + len <= octets.size()) std::fill_n(octets.begin() + static_cast<std::ptrdiff_t>(at), len, std::uint8_t{0});
}

void blank(std::vector<std::uint8_t>& octets, const Chunk& chunk) {
  for (const Segment& segment : chunk) {
    blank(octets, segment.at, kWord);
    blank(octets, segment.at + 2 * kWord, kOffsetLen);
  }
}

// The message without the fields that the text numbers: XIDs, handles and offsets.
std::vector<std::uint8_t> blanked(const Message& message, Octets octets) {
  std::vector<std::uint8_t> copy(octets.begin(), octets.end());
  blank(copy, 0, kWord);
  blank(copy, message.header_len, kWord);
  blank(copy, message.reads);
  for (const Chunk& chunk : message.writes) blank(copy, chunk);
  if (message.reply) blank(copy, *message.reply);
  return copy;
}

}  // namespace

std::size_t EndRecord::number_of_xid(std::uint32_t xid) {
  return xids_.try_emplace(xid, xids_.size() + 1).first->second;
}

const EndRecord::Handle& EndRecord::handle(std::uint32_t handle, std::uint64_t offset) {
  return handles_.try_emplace(handle, Handle{handles_.size() + 1, offset}).first->second;
}

std::string EndRecord::text_of(std::uint32_t the_handle, std::uint64_t offset) {
  const Handle& known = handle(the_handle, offset);
  const auto distance = static_cast<std::int64_t>(offset - known.first_offset);
  return "h" + std::to_string(known.number) + (distance < 0 ? "" : "+") + std::to_string(distance);
}

std::string EndRecord::text_of(const Segment& segment) {
  return text_of(segment.handle, segment.offset) + ":" + std::to_string(segment.length);
}

std::string EndRecord::text_of(const Chunk& chunk) {
  std::string text = "(";
  for (const Segment& segment : chunk) text += (text.size() > 1 ? " " : "") + text_of(segment);
  return text + ")";
}

std::string EndRecord::text_of(const Message& message, Octets octets) {
  std::string text = std::string(name_of(message.kind)) + " xid " + std::to_string(number_of_xid(message.xid)) +
                     " credits " + std::to_string(message.credits);
  for (const Segment& segment : message.reads) {
    text += " read @" + std::to_string(segment.position) + " " + text_of(segment);
  }
  for (const Chunk& chunk : message.writes) text += " write " + text_of(chunk);
  if (message.reply) text += " reply " + text_of(*message.reply);
  return text + " header " + std::to_string(message.header_len) + " payload " +
         std::to_string(octets.size() - message.header_len) + " octets " + hash_of(blanked(message, octets));
}

std::string EndRecord::send_line(const verbs::SendWr& wr, Octets octets, Xids& xids, std::string& fault) {
  std::string line = "Send ";
  const auto decoded = decode(octets);
  if (const auto* message = std::get_if<Message>(&decoded)) {
    xids.insert(message->xid);
    line += text_of(*message, octets);
  } else {
    fault = std::get<Fault>(decoded).text;
    line += "malformed octets " + hash_of(octets);
  }
  if (wr.opcode == verbs::WrOpcode::kSendWithInv) {
    line += " invalidates h" + std::to_string(handle(wr.invalidate_rkey, 0).number);
  }
  return line;
}

std::string EndRecord::line_of(const verbs::SendWr& wr, Octets octets, Xids& xids, std::string& fault) {
  switch (wr.opcode) {
    case verbs::WrOpcode::kSend:
    case verbs::WrOpcode::kSendWithInv: return send_line(wr, octets, xids, fault);
    case verbs::WrOpcode::kRdmaRead:
      return "Read " + text_of(wr.rkey, wr.remote_addr) + ":" + std::to_string(octets.size());
    case verbs::WrOpcode::kRdmaWrite: {
      std::vector<std::uint8_t> copy(octets.begin(), octets.end());
      const bool begins_with_xid = copy.size() >= kWord && xids.contains(first_word(copy));
      if (begins_with_xid) blank(copy, 0, kWord);
      return "Write " + text_of(wr.rkey, wr.remote_addr) + ":" + std::to_string(octets.size()) +
             (begins_with_xid ? " of an RPC message" : "") + " octets " + hash_of(copy);
    }
    case verbs::WrOpcode::kBindMw:
    case verbs::WrOpcode::kLocalInv: return "";
    default: fault = "a request that RPC-over-RDMA never posts"; return "unknown";
  }
}

}  // namespace weft::wire_v1
