#include "apps/perf/message.h"

#include <algorithm>
#include <cassert>

#include "mpa/wire/cursor.h"

namespace weft::apps::perf {
namespace {

// A text travels in a field of fixed length, filled up with NULs.
bool emit_text(Writer& writer, const std::string& text, std::size_t field_len) {
  for (std::size_t i = 0; i < field_len; ++i) {
    if (!writer.u8(i < text.size() ? std::uint8_t(text[i]) : std::uint8_t{0})) return false;
  }
  return true;
}

bool parse_text(Reader& reader, std::size_t field_len, std::string& text) {
  ConstBytes field;
  if (!reader.bytes(field_len, field)) return false;
  auto end = std::find(field.begin(), field.end(), std::uint8_t{0});
  text.assign(field.begin(), end);
  // The text ends up on a terminal.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return true;
}

constexpr std::uint16_t kLatFlag = 1;
constexpr std::uint16_t kSpinFlag = 2;

bool parse_magic(Reader& reader) {
  std::uint32_t magic = 0;
  return reader.u32(magic) && magic == kMagic;
}

}  // namespace

ConstBytes without_padding(ConstBytes octets, std::size_t len) {
  if (octets.size() <= len) return octets;
  const ConstBytes rest = octets.subspan(len);
  const bool padding = std::all_of(rest.begin(), rest.end(), [](std::uint8_t octet) { return octet == 0; });
  return padding ? octets.first(len) : octets;
}

void cut_ready(std::vector<std::uint8_t>& octets, std::size_t most) {
  while (octets.size() > std::max(most, kReadyLen - kMaxErrorLen) && octets.back() == 0) octets.pop_back();
}

std::vector<std::uint8_t> filled_ready(ConstBytes octets) {
  const ConstBytes ready = without_padding(octets, kReadyLen);
  std::vector<std::uint8_t> out(ready.begin(), ready.end());
  if (out.size() >= kReadyLen - kMaxErrorLen && out.size() < kReadyLen) out.resize(kReadyLen);
  return out;
}

std::array<std::uint8_t, kHelloLen> emit_hello(const Hello& hello) {
  std::array<std::uint8_t, kHelloLen> out{};
  const auto flags = std::uint16_t((hello.lat ? kLatFlag : 0) | (hello.spin ? kSpinFlag : 0));
  Writer writer(out);
  [[maybe_unused]] bool fits = writer.u32(kMagic) && writer.u16(std::uint16_t(hello.op)) && writer.u16(flags) &&
                               writer.u32(hello.depth) && writer.u64(hello.size);
  assert(fits && writer.len() == kHelloLen);
  return out;
}

std::optional<Hello> parse_hello(ConstBytes octets) {
  Reader reader(octets);
  std::uint16_t op = 0, flags = 0;
  Hello hello;
  if (!parse_magic(reader) || !reader.u16(op) || !reader.u16(flags) || !reader.u32(hello.depth) ||
      !reader.u64(hello.size) || !reader.empty()) {
    return std::nullopt;
  }
  std::optional<Op> known = op_from_number(op);
  if (!known || flags > (kLatFlag | kSpinFlag) || hello.depth == 0 || hello.depth > kMaxDepth || hello.size > kMaxSize)
    return std::nullopt;
  hello.op = *known;
  hello.lat = (flags & kLatFlag) != 0;
  hello.spin = (flags & kSpinFlag) != 0;
  return hello;
}

std::array<std::uint8_t, kReadyLen> emit_ready(const Ready& ready) {
  std::array<std::uint8_t, kReadyLen> out{};
  Writer writer(out);
  [[maybe_unused]] bool fits =
      writer.u32(kMagic) && writer.u16(ready.tcp_port) && writer.u16(ready.rpc_port) && writer.u64(ready.addr) &&
      writer.u32(ready.rkey) && writer.u64(ready.length) && writer.u32(ready.window) && writer.u32(ready.crc ? 1 : 0) &&
      emit_text(writer, ready.congestion_control, kMaxNameLen) && emit_text(writer, ready.error, kMaxErrorLen);
  assert(fits && writer.len() == kReadyLen);
  return out;
}

std::optional<Ready> parse_ready(ConstBytes octets) {
  Reader reader(octets);
  Ready ready;
  std::uint32_t crc = 0;
  if (!parse_magic(reader) || !reader.u16(ready.tcp_port) || !reader.u16(ready.rpc_port) || !reader.u64(ready.addr) ||
      !reader.u32(ready.rkey) || !reader.u64(ready.length) || !reader.u32(ready.window) || !reader.u32(crc) ||
      crc > 1 || !parse_text(reader, kMaxNameLen, ready.congestion_control) ||
      !parse_text(reader, kMaxErrorLen, ready.error) || !reader.empty()) {
    return std::nullopt;
  }
  ready.crc = crc == 1;
  return ready;
}

std::array<std::uint8_t, kTotalsLen> emit_totals(const Totals& totals) {
  std::array<std::uint8_t, kTotalsLen> out{};
  Writer writer(out);
  [[maybe_unused]] bool fits = writer.u32(kMagic) && writer.u32(totals.final ? 1 : 0) && writer.u64(totals.messages) &&
                               writer.u64(totals.octets);
  assert(fits && writer.len() == kTotalsLen);
  return out;
}

std::optional<Totals> parse_totals(ConstBytes octets) {
  Reader reader(octets);
  Totals totals;
  std::uint32_t final = 0;
  if (!parse_magic(reader) || !reader.u32(final) || final > 1 || !reader.u64(totals.messages) ||
      !reader.u64(totals.octets) || !reader.empty()) {
    return std::nullopt;
  }
  totals.final = final == 1;
  return totals;
}

}  // namespace weft::apps::perf
